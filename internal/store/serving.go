package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/pick"
	"holdfast/internal/core/serving"
)

// ServingRecord is who serves at a provider, as stored. The zero value is that of a
// provider where nobody ever did. Values are shared: they MUST NOT be changed.
type ServingRecord struct {
	serving.Record
	Revision int64
}

func servingKey(p account.Provider) Key { return Key{KindServing, string(p)} }
func pastKey(p account.Provider) Key    { return Key{KindServing, string(p) + "/past"} }

// ChangeServing applies change to the record of who serves at a provider and writes the
// result if change says that it is worth it. base is the record as last read; when another
// process wrote in between, change is applied to what it wrote, so that one switch is one
// entry however many saw it. It returns the record as stored.
//
// Where change adds a switch to a record that is full, the record's own go to the past
// first: whoever stops between the two has lost none, and doubled none.
func (s *Store) ChangeServing(ctx context.Context, p account.Provider, base ServingRecord, change func(serving.Record) (serving.Record, bool)) (ServingRecord, error) {
	var next serving.Record
	written, err := s.rewrite(ctx, "who serves at "+string(p), Record{Key: servingKey(p), Revision: base.Revision}, func(stored Record, again bool) (body []byte, err error) {
		if again {
			base = ServingRecord{}
			if stored.Revision > 0 {
				if base, err = s.decoded.serving(stored); err != nil {
					return nil, err
				}
			}
		}
		var worth bool
		if next, worth = change(base.Record); worth && base.Full() && next.Count() > base.Count() {
			if err := s.joinPast(ctx, p, base.Switches); err != nil {
				return nil, err
			}
		}
		return marshal(next, worth)
	})
	if err != nil || written.Revision == 0 {
		return base, err
	}
	return ServingRecord{Record: next, Revision: written.Revision}, nil
}

// joinPast adds a record's switches to the provider's past. Doing so twice changes nothing.
func (s *Store) joinPast(ctx context.Context, p account.Provider, switches []serving.Switch) error {
	_, err := s.reread(ctx, "past switches of "+string(p), Record{Key: pastKey(p)}, func(stored Record) ([]byte, error) {
		past, err := pastOf(stored)
		if err != nil {
			return nil, err
		}
		faster := len(past.Switches) > 0 && past.Switches[0].N >= switches[0].N // another process was
		return marshal(past.Join(switches), !faster)
	})
	return err
}

func pastOf(r Record) (serving.Past, error) {
	var past serving.Past
	if r.Revision == 0 {
		return past, nil
	}
	if err := json.Unmarshal(r.Body, &past); err != nil {
		return past, fmt.Errorf("decode past switches: %w", err)
	}
	return past, nil
}

// Switches reads the history of who served at a provider, newest first. It is not for the
// request path.
func (s *Store) Switches(ctx context.Context, p account.Provider) ([]serving.Switch, error) {
	ctx, cancel := context.WithTimeout(ctx, s.within)
	defer cancel()
	records, err := s.backend.Get(ctx, []Key{servingKey(p), pastKey(p)})
	if err != nil {
		return nil, fmt.Errorf("read switches: %w", err)
	}
	var now ServingRecord
	var past serving.Past
	for _, r := range records {
		if r.Key == pastKey(p) {
			past, err = pastOf(r)
		} else {
			now, err = s.decoded.serving(r)
		}
		if err != nil {
			return nil, err
		}
	}
	return serving.History(now.Record, past), nil
}

// ServingLook is what a look at a provider told of who serves there.
type ServingLook struct {
	provider account.Provider
	view     serving.View
	stored   ServingRecord
}

// LookServing looks who serves at each provider whose policy is order, by two reads, and
// writes nothing down. It reads the store itself, at the clock's instants, so that nobody
// judges by what was read a while ago.
func (s *Store) LookServing(ctx context.Context, clock func() time.Time) ([]ServingLook, error) {
	v, err := s.Read(ctx, Query{Catalog: true})
	if err != nil {
		return nil, err
	}
	var q Query
	for _, p := range account.Providers {
		if of := v.Catalog.Of(p); len(of) > 0 && v.Catalog.PolicyOf(p).Name == catalog.Order {
			q.Serving = append(q.Serving, p)
			for _, a := range of {
				q.States = append(q.States, a.ID)
			}
		}
	}
	if len(q.Serving) == 0 {
		return nil, nil
	}
	readAt := clock()
	known, err := s.Read(ctx, q)
	if err != nil {
		return nil, err
	}
	now, settings := clock(), v.Catalog.Settings()
	known.States = Together(now, v.Catalog.Accounts, known.States)
	var looks []ServingLook
	for _, p := range q.Serving {
		view := serving.View{Now: now, ReadAt: readAt, Catalog: v.Catalog.Revision, Policy: v.Catalog.PolicyOf(p), Settings: settings}
		view.Candidates = pick.Candidates(v.Catalog.Of(p), Known(known.States), known.Serving[p].Account)
		looks = append(looks, ServingLook{p, view, known.Serving[p]})
	}
	return looks, nil
}

// RecordServing writes down what changed by looks that were just made: a switch, or who
// stands before the serving account. A look that another process has overtaken writes
// nothing, and one provider's trouble does not keep the others from theirs.
//
// It is for a round of the poller, and for a command that changed what serving depends on.
func (s *Store) RecordServing(ctx context.Context, looks []ServingLook) error {
	var failed error
	for _, l := range looks {
		_, err := s.ChangeServing(ctx, l.provider, l.stored, func(r serving.Record) (serving.Record, bool) { return r.Next(l.view) })
		failed = errors.Join(failed, err)
	}
	return failed
}
