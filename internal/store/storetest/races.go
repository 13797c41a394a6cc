package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"holdfast/internal/core/pin"
	"holdfast/internal/store"
)

var concurrentTests = []test{
	{"OneClaimWins", func(t *testing.T, h Harness) {
		const rounds, racers = 100, 8
		ss := h.stores(t, racers)
		now := instant()
		for range rounds {
			key := unique()
			won := make([]bool, racers)
			adopted := make([]pin.Record, racers)
			together(racers, func(i int) {
				r := pin.New(anthropic(newAccount()), false, now, life)
				got, ours, err := ss[i].ClaimPin(soon(t), key, r, now)
				if err != nil {
					t.Errorf("claim: got %v, want no error", err)
				}
				if ours && got.Account != r.Account {
					t.Errorf("won: got the account of another, want our own")
				}
				won[i], adopted[i] = ours, got
			})
			winners := 0
			for i := range racers {
				if won[i] {
					winners++
				}
				if adopted[i].Account == "" || adopted[i].Account != adopted[0].Account || adopted[i].Revision != 1 {
					t.Errorf("racer %d: got %q at revision %d, want what all others adopted, at 1", i, adopted[i].Account, adopted[i].Revision)
				}
			}
			if winners != 1 {
				t.Fatalf("got %d winners, want 1", winners)
			}
		}
	}},
	{"OneTakeoverWins", func(t *testing.T, h Harness) {
		const rounds, racers = 20, 8
		ss := h.stores(t, racers)
		now := instant()
		for range rounds {
			key := unique()
			old := pin.New(anthropic("old"), false, now.Add(-5*life), life)
			if _, ours, err := ss[0].ClaimPin(soon(t), key, old, old.CreatedAt); err != nil || !ours {
				t.Fatalf("got %v and error %v, want the first claim to win", ours, err)
			}
			var winners atomic.Int64
			together(racers, func(i int) {
				_, ours, err := ss[i].ClaimPin(soon(t), key, pin.New(anthropic(newAccount()), false, now, life), now)
				if err != nil {
					t.Errorf("claim: got %v, want no error", err)
				}
				if ours {
					winners.Add(1)
				}
			})
			if winners.Load() != 1 {
				t.Fatalf("got %d winners, want 1", winners.Load())
			}
		}
	}},
	{"ReplacementsAllCount", func(t *testing.T, h Harness) {
		// Each writer adds one to a number in the body until it won 20 times.
		const writers, each = 4, 20
		hs := h.handles(t, writers)
		key := newKey()
		together(writers, func(i int) {
			var seen store.Record
			for won, tries := 0, 0; won < each; tries++ {
				if tries > writers*each {
					t.Errorf("got %d losses, want no more than the others have wins", tries-won)
					return
				}
				n, _ := strconv.Atoi(string(seen.Body))
				stored, err := hs[i].Put(soon(t), store.Record{Key: key, Body: fmt.Append(nil, n+1)}, store.Condition{Revision: seen.Revision})
				switch {
				case err == nil:
					won++
				case !errors.Is(err, store.ErrConflict):
					t.Errorf("put: got %v, want none or ErrConflict", err)
					return
				}
				seen = stored
			}
		})
		same(t, "in the end", get(t, hs[0], key), store.Record{Key: key, Revision: writers * each, Body: fmt.Append(nil, writers*each)})
	}},
	{"CountsAndReplacementsKeepApart", func(t *testing.T, h Harness) {
		const writers, each = 4, 25
		hs := h.handles(t, writers)
		key := newKey()
		together(writers, func(i int) {
			seen := store.Record{}
			for won, tries := 0, 0; won < each; tries++ {
				if tries > writers*each {
					t.Errorf("got %d losses, want no more than the others have wins", tries-won)
					return
				}
				var err error
				if i%2 == 0 {
					_, err = hs[i].Add(soon(t), key, 0)
				} else {
					seen, err = hs[i].Put(soon(t), store.Record{Key: key}, store.Condition{Revision: seen.Revision})
				}
				if err == nil {
					won++
				} else if !errors.Is(err, store.ErrConflict) {
					t.Errorf("got %v, want none or ErrConflict", err)
					return
				}
			}
		})
		same(t, "in the end", get(t, hs[0], key), store.Record{Key: key, Revision: 2 * each, Count: 2 * each})
	}},
	{"HistoryIsLinear", historyIsLinear},
}

// step is what one call was asked; answer what it was told.
type step struct {
	call     string // get, put, take (put where expired), add, delete
	revision int64
	body     string
}

type answer struct {
	conflict bool
	record   string // of get and put, in words
	count    int64  // of add
}

// model says what a single record does when calls come one after the other. The state is
// the store.Record; a revision and count of 0 mean that no record exists.
var model = porcupine.Model{
	Init: func() any { return store.Record{} },
	Step: func(state, input, output any) (bool, any) {
		r, in, out := state.(store.Record), input.(step), output.(answer)
		there := r.Revision > 0 || r.Count > 0
		switch in.call {
		case "put", "take":
			expired := in.call == "take" && r.Revision > 0 // all that was put has expired long ago
			if r.Revision != in.revision && !expired {
				return out.conflict && out.record == brief(r), r
			}
			r.Revision, r.Body = r.Revision+1, []byte(in.body)
			return !out.conflict && out.record == brief(r), r
		case "add":
			if r.Count >= historyLimit {
				return out.conflict && out.count == r.Count, r
			}
			r.Count++
			return !out.conflict && out.count == r.Count, r
		case "delete":
			if there && r.Revision != in.revision {
				return out.conflict, r
			}
			return !out.conflict, store.Record{}
		}
		return out.record == brief(r), r
	},
	Equal: func(a, b any) bool { return brief(a.(store.Record)) == brief(b.(store.Record)) },
	DescribeOperation: func(input, output any) string {
		return fmt.Sprintf("%+v: %+v", input, output)
	},
}

const historyLimit = 3

func brief(r store.Record) string { return fmt.Sprintf("%d %q %d", r.Revision, r.Body, r.Count) }

// historyIsLinear lets several handles do at random what a record allows, and checks that
// what each was told can be explained by one order of all calls, in which every call
// takes effect between its start and its end.
func historyIsLinear(t *testing.T, h Harness) {
	const clients, calls, rounds = 6, 12, 8
	hs := h.handles(t, clients)
	past := instant().Add(-time.Hour)
	for round := range rounds {
		key := newKey()
		begun := time.Now()
		histories := make([][]porcupine.Operation, clients)
		together(clients, func(i int) {
			random := rand.New(rand.NewPCG(uint64(round), uint64(i)))
			var seen int64
			for n := range calls {
				in := step{call: []string{"get", "put", "put", "put", "take", "add", "delete"}[random.IntN(7)], revision: seen, body: fmt.Sprintf("%d.%d", i, n)}
				start := time.Since(begun).Nanoseconds()
				out, revision, err := do(t, hs[i], key, in, past)
				if err != nil {
					t.Errorf("%s: got %v, want none or ErrConflict", in.call, err)
					return
				}
				if in.call != "add" && in.call != "delete" {
					seen = revision
				}
				histories[i] = append(histories[i], porcupine.Operation{
					ClientId: i, Input: in, Call: start, Output: out, Return: time.Since(begun).Nanoseconds(),
				})
			}
		})
		var history []porcupine.Operation
		for _, part := range histories {
			history = append(history, part...)
		}
		if result := porcupine.CheckOperationsTimeout(model, history, 20*time.Second); result != porcupine.Ok {
			t.Fatalf("round %d: got a history that is %s, want one order that explains it", round, result)
		}
	}
}

// do makes one call and returns what it was told, and the revision it saw.
func do(t *testing.T, b store.Backend, key store.Key, in step, past time.Time) (answer, int64, error) {
	var r store.Record
	var out answer
	var err error
	switch in.call {
	case "get":
		var found []store.Record
		if found, err = b.Get(soon(t), []store.Key{key}); len(found) == 1 {
			r = found[0]
		}
	case "put", "take":
		cond := store.Condition{Revision: in.revision}
		if in.call == "take" {
			cond.ExpiredBy = past
		}
		r, err = b.Put(soon(t), store.Record{Key: key, Body: []byte(in.body), ExpiresAt: past}, cond)
	case "add":
		out.count, err = b.Add(soon(t), key, historyLimit)
	case "delete":
		err = b.Delete(soon(t), key, in.revision)
	}
	if errors.Is(err, store.ErrConflict) {
		out.conflict, err = true, nil
	}
	if in.call != "add" && in.call != "delete" {
		out.record = brief(r)
	}
	return out, r.Revision, err
}
