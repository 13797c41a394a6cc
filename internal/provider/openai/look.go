package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"holdfast/internal/core/account"
	"holdfast/internal/core/claims"
	"holdfast/internal/core/credential"
	"holdfast/internal/provider"
	"holdfast/internal/wire/limits"
)

const (
	usageURL = "https://chatgpt.com/backend-api/wham/usage"
	// fedRAMPHeader must come with the token of such a workspace, and with no other.
	fedRAMPHeader = "X-Openai-Fedramp"
)

// Looks implements provider.Looker. The usage endpoint is of ChatGPT plans; a key's usage
// is told to an administrator's key alone. It answers any client that names itself.
func (p Provider) Looks(kind account.Kind, c credential.Credential) []provider.Call {
	if kind != account.Subscription {
		return nil
	}
	token, _ := claims.ReadChatGPT(c.Access.Reveal())
	if claims.ChatGPTWorkspace(c.Principal) == "" {
		c.Principal = token.Principal()
	}
	h := http.Header{"Accept": {"application/json"}}
	p.Authorize(h, kind, c)
	if token.FedRAMP {
		h.Set(fedRAMPHeader, "true")
	}
	return []provider.Call{{Method: http.MethodGet, URL: usageURL, Header: h}}
}

// Looked implements provider.Looker. Windows have the names that Read gives them; lengths
// are in seconds here, and in minutes in headers. A window that is null or empty is absent.
func (p Provider) Looked(_ int, r provider.Reply) (account.Reading, error) {
	if r.Status != http.StatusOK {
		x := p.Classify(provider.Answer{Status: r.Status, Header: r.Header, Body: r.Body, At: r.At, Kind: account.Subscription})
		if x.Kind == account.BadCredential {
			return account.Reading{}, fmt.Errorf("look at usage: %w: %w", provider.ErrCredentialRefused, r.Unexpected())
		}
		return account.Reading{}, fmt.Errorf("look at usage: %w", r.Unexpected())
	}
	var answer struct {
		Limit      lookedLimit     `json:"rate_limit"`
		Additional json.RawMessage `json:"additional_rate_limits"`
		Credits    struct {
			Has       flag            `json:"has_credits"`
			Unlimited flag            `json:"unlimited"`
			Spent     flag            `json:"overage_limit_reached"`
			Balance   json.RawMessage `json:"balance"`
		} `json:"credits"`
		Spend struct {
			Reached flag `json:"reached"`
		} `json:"spend_control"`
	}
	if err := json.Unmarshal(r.Body, &answer); err != nil && !json.Valid(r.Body) {
		return account.Reading{}, fmt.Errorf("look at usage: %w", r.Unexpected())
	}
	windows := answer.Limit.windows(mainLimit, "", r)
	var additional []struct {
		Name    text        `json:"limit_name"`
		Feature text        `json:"metered_feature"`
		Limit   lookedLimit `json:"rate_limit"`
	}
	_ = json.Unmarshal(answer.Additional, &additional) // null, or of another shape
	for _, a := range additional {
		if id := limitID(string(a.Feature)); id != mainLimit {
			windows = append(windows, a.Limit.windows(id, string(a.Name), r)...)
		}
	}
	reading := account.Reading{At: r.At, Source: account.FromPoll}
	for _, w := range merge(windows) {
		reading.Windows = append(reading.Windows, w.WindowReading)
	}
	if reading.Empty() {
		return account.Reading{}, fmt.Errorf("look at usage: %w", errors.New("the answer reports no window"))
	}
	c := answer.Credits
	reading.Overage.Available = !bool(c.Spent) && !bool(answer.Spend.Reached) &&
		credits(bool(c.Has), bool(c.Unlimited), strings.Trim(string(c.Balance), `"`))
	return reading, nil
}

// lookedLimit is one limit as the usage endpoint tells it.
type lookedLimit struct {
	Reached   flag       `json:"limit_reached"`
	Primary   lookedSlot `json:"primary_window"`
	Secondary lookedSlot `json:"secondary_window"`
}

// lookedSlot is a window as the usage endpoint tells it.
type lookedSlot struct {
	Used       number `json:"used_percent"`
	Seconds    number `json:"limit_window_seconds"`
	ResetAt    number `json:"reset_at"`
	ResetAfter number `json:"reset_after_seconds"`
}

// windows are the limit's. Of one that is reached, the fullest is the window that rejects:
// percents are rounded, and one of 99 that rejects must not pass for open.
func (l lookedLimit) windows(id, name string, r provider.Reply) []planWindow {
	var out []planWindow
	fullest := -1
	for _, s := range []struct {
		slot string
		lookedSlot
	}{{primary, l.Primary}, {"secondary", l.Secondary}} {
		wire := slot{string(s.Used), minutes(s.Seconds), string(s.ResetAt), string(s.ResetAfter)}
		w, ok := wire.window(s.slot, scopeOf(id, name), r.At)
		if !ok {
			continue
		}
		out = append(out, planWindow{w, id})
		if fullest < 0 || w.Utilization > out[fullest].Utilization {
			fullest = len(out) - 1
		}
	}
	if l.Reached && fullest >= 0 {
		out[fullest].Status = account.Rejected
	}
	return out
}

// minutes gives a length in seconds as headers have it; empty when the text is not a length.
func minutes(seconds number) string {
	n, ok := limits.Fraction(string(seconds))
	if !ok || n > maxMinutes*60 {
		return ""
	}
	return strconv.FormatInt(int64(n/60+0.5), 10)
}

// flag is a JSON boolean; a value of another type is false.
type flag bool

func (f *flag) UnmarshalJSON(b []byte) error {
	*f = string(b) == "true"
	return nil
}
