package metric

import (
	"time"

	"holdfast/internal/account"
)

// Request is what is measured of one request to a provider.
type Request struct {
	Provider account.Provider
	// Account is the name of the account that served last; empty where none did.
	Account string
	// Outcome says what became of it, in one of the words of the gateway's log line.
	Outcome string
	// Pin is what X-Holdfast-Pin said: kept, moved, new or none; empty where the request did
	// not come to that.
	Pin string
	// Source is where the conversation's key was found; empty where it was not looked for.
	Source string
	// Rejections are the kinds of what upstreams refused on the way.
	Rejections []account.RejectionKind
	// Added is how long the gateway took before the first send; 0 where nothing was sent.
	Added time.Duration
	// Prompt and CacheRead are in tokens; a Prompt of 0 tells nothing about the share.
	Prompt, CacheRead int64
	// Yielded and StoreUnavailable say that the request was refused for that.
	Yielded, StoreUnavailable bool
}

// OfRequest makes the data of one request.
func OfRequest(r Request) []Datum {
	if r.Account == "" {
		r.Account = None
	}
	data := []Datum{
		datum(Requests, 1, Dimension{Provider, string(r.Provider)}, Dimension{Account, r.Account}, Dimension{Outcome, r.Outcome}),
		datum(PinsKept, flag(r.Pin == "kept")),
		datum(PinsMoved, flag(r.Pin == "moved")),
		datum(PinsNew, flag(r.Pin == "new")),
		datum(PinsNone, flag(r.Pin == "none")),
		datum(Yielded, flag(r.Yielded)),
		datum(StoreUnavailable, flag(r.StoreUnavailable)),
	}
	if r.Source != "" {
		data = append(data, datum(ConversationKey, 1, Dimension{Source, r.Source}))
	}
	counts := map[account.RejectionKind]float64{}
	for _, kind := range r.Rejections {
		counts[kind]++
	}
	for _, kind := range r.Rejections {
		if counts[kind] > 0 {
			data = append(data, datum(Rejections, counts[kind], Dimension{Kind, string(kind)}))
			delete(counts, kind)
		}
	}
	if r.Added > 0 {
		data = append(data, datum(AddedLatency, milliseconds(r.Added)))
	}
	if r.Prompt > 0 {
		data = append(data, datum(CacheReadShare, float64(r.CacheRead)/float64(r.Prompt)))
	}
	return data
}
