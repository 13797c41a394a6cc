// Package store is the contract between what holdfast knows and where it is kept.
//
// Store speaks the words of its users: it claims, moves and touches pins and owners of
// objects, folds evidence into states, counts placements, changes the catalog, keeps sealed
// credentials and how far their renewal has come, gives leases, and remembers who served,
// when who was looked at, and how full windows were. It decides none of that: what a change
// is comes from its caller, or from a pure package such as serving. All of it stands on a
// Backend, which only keeps records and writes them conditionally, in one
// round trip each: sqlitestore on one machine, dynamostore in AWS, memstore for tests.
// One suite, storetest, says what each of them must do.
//
// # Races
//
// Every write names what it depends on. Whoever loses a race is told the winner's record
// by the same call. Losing is normal and is never an error to log. Expiry is judged by
// the caller's clock, in the read and in the condition, never by a backend's own.
//
// # Time
//
// Every call on the request path ends within CallTimeout, with ErrUnavailable if the
// backend did not answer. The gateway then refuses; it never guesses. Who keeps nobody
// waiting may be more patient: Within.
package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/event"
	"holdfast/internal/core/object"
	"holdfast/internal/core/pin"
)

// CallTimeout bounds every call that a request waits for.
const CallTimeout = 2 * time.Second

const catalogID = "catalog"

// Store is the contract's users' side. Make one with New.
type Store struct {
	backend Backend
	decoded *decoded
	events  *event.Buffer // what happened and is not written yet
	within  time.Duration
}

// New returns a store on a backend, whose calls end within CallTimeout.
func New(b Backend) *Store {
	return &Store{backend: b, decoded: newDecoded(), events: &event.Buffer{}, within: CallTimeout}
}

// Within returns the same store with another bound on each call, for commands: a disk that
// stalls for some seconds should not fail them. A backend may have a shorter one itself.
func (s *Store) Within(d time.Duration) *Store {
	return &Store{backend: s.backend, decoded: s.decoded, events: s.events, within: d}
}

// Close closes the backend.
func (s *Store) Close() error { return s.backend.Close() }

// CatalogRecord is the catalog with its revision; revision 0 is the empty catalog that
// nobody changed yet. Values are shared: they MUST NOT be changed.
type CatalogRecord struct {
	*catalog.Catalog
	Revision int64
}

// StateRecord is an account's state as stored.
type StateRecord struct {
	account.State
	// Placed counts the conversations ever placed on the account.
	Placed   int64
	Revision int64
}

// SealedRecord is an account's credential as stored: sealed.
type SealedRecord struct {
	Sealed   []byte
	Revision int64
}

// Query says what a request needs to know.
type Query struct {
	Catalog     bool
	Poll        bool
	Pins        []string
	Owners      []string // by object.Key
	States      []account.ID
	Credentials []account.ID
	// Serving are providers whose policy is order.
	Serving []account.Provider
}

// View is the answer to a Query. What does not exist is absent from the maps, except
// states: an account never seen has the zero StateRecord.
type View struct {
	Catalog     CatalogRecord // set when asked for
	Poll        PollRecord    // the same
	Pins        map[string]pin.Record
	Owners      map[string]object.Record
	States      map[account.ID]StateRecord
	Credentials map[account.ID]SealedRecord
	Serving     map[account.Provider]ServingRecord
}

// Read answers a query in one round trip.
func (s *Store) Read(ctx context.Context, q Query) (View, error) {
	keys := make([]Key, 0, 2+len(q.Pins)+len(q.Owners)+len(q.States)+len(q.Credentials)+len(q.Serving))
	if q.Catalog {
		keys = append(keys, Key{KindCatalog, catalogID})
	}
	if q.Poll {
		keys = append(keys, Key{KindPoll, pollID})
	}
	for _, p := range q.Pins {
		keys = append(keys, Key{KindPin, p})
	}
	for _, o := range q.Owners {
		keys = append(keys, Key{KindOwner, o})
	}
	for _, id := range q.States {
		keys = append(keys, Key{KindState, string(id)})
	}
	for _, id := range q.Credentials {
		keys = append(keys, Key{KindCredential, string(id)})
	}
	for _, p := range q.Serving {
		keys = append(keys, servingKey(p))
	}
	v := View{
		Pins:        make(map[string]pin.Record, len(q.Pins)),
		Owners:      make(map[string]object.Record, len(q.Owners)),
		States:      make(map[account.ID]StateRecord, len(q.States)),
		Credentials: make(map[account.ID]SealedRecord, len(q.Credentials)),
	}
	if q.Catalog {
		v.Catalog = CatalogRecord{Catalog: &catalog.Catalog{}}
	}
	if len(q.Serving) > 0 {
		v.Serving = make(map[account.Provider]ServingRecord, len(q.Serving))
	}
	if len(keys) == 0 {
		return v, nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.within)
	defer cancel()
	records, err := s.backend.Get(ctx, keys)
	if err != nil {
		return View{}, fmt.Errorf("read the store: %w", err)
	}
	for _, r := range records {
		if err := s.into(&v, r); err != nil {
			return View{}, err
		}
	}
	for _, id := range q.States {
		if _, ok := v.States[id]; !ok {
			v.States[id] = StateRecord{}
		}
	}
	return v, nil
}

func (s *Store) into(v *View, r Record) error {
	var err error
	switch r.Kind {
	case KindCatalog:
		v.Catalog, err = s.decoded.catalog(r)
	case KindPoll:
		v.Poll, err = pollOf(r)
	case KindPin:
		v.Pins[r.ID], err = s.decoded.pin(r)
	case KindOwner:
		v.Owners[r.ID], err = s.decoded.owner(r)
	case KindState:
		v.States[account.ID(r.ID)], err = s.decoded.state(r)
	case KindCredential:
		v.Credentials[account.ID(r.ID)] = SealedRecord{r.Body, r.Revision}
	case KindServing:
		v.Serving[account.Provider(r.ID)], err = s.decoded.serving(r)
	default: // no query asks for it
	}
	return err
}

// Fold applies change to an account's state and writes the result if change says that it
// is worth it. base is the state as last read; when another process wrote in between,
// change is applied to what it wrote. It returns the state as stored. A state that was
// The events that lie between wait for WriteEvents. A state that was
// forgotten since it was read stays so: a request that outlives its account would leave
// one of an account that there is no more. What is returned then is stored nowhere.
func (s *Store) Fold(ctx context.Context, id account.ID, base StateRecord, change func(account.State) (account.State, bool)) (StateRecord, error) {
	var next account.State
	var forgotten bool
	written, err := s.rewrite(ctx, "state of "+string(id), Record{Key: Key{KindState, string(id)}, Revision: base.Revision}, func(stored Record, again bool) (body []byte, err error) {
		if again {
			known := base.Revision > 0
			if base, err = s.decoded.state(stored); err != nil {
				return nil, err
			}
			if forgotten = known && base.Revision == 0; forgotten {
				return nil, nil
			}
		}
		var worth bool
		next, worth = change(base.State)
		return marshal(next, worth)
	})
	switch {
	case err != nil:
		return base, err
	case forgotten:
		return StateRecord{State: next}, nil
	case written.Revision == 0:
		return base, nil
	}
	s.events.Add(event.Changes(id, base.State, next)...)
	return StateRecord{State: next, Placed: max(written.Count, base.Placed), Revision: written.Revision}, nil
}

// Place counts a conversation placed on an account and returns the new count. With limit
// above 0 it counts only below it, and otherwise returns the count and false.
func (s *Store) Place(ctx context.Context, id account.ID, limit int64) (int64, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, s.within)
	defer cancel()
	n, err := s.backend.Add(ctx, Key{KindState, string(id)}, limit)
	if errors.Is(err, ErrConflict) {
		return n, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("count a placement: %w", err)
	}
	return n, true, nil
}

// ChangeCatalog applies change to the catalog and writes it; when another process changed
// it in between, change is applied again to what it wrote. An error of change is returned
// as it is and nothing is written. change MUST NOT alter its argument in place.
func (s *Store) ChangeCatalog(ctx context.Context, change func(catalog.Catalog) (catalog.Catalog, error)) (CatalogRecord, error) {
	v, err := s.Read(ctx, Query{Catalog: true})
	if err != nil {
		return CatalogRecord{}, err
	}
	base := v.Catalog
	var next catalog.Catalog
	written, err := s.rewrite(ctx, "the catalog", Record{Key: Key{KindCatalog, catalogID}, Revision: base.Revision}, func(stored Record, again bool) (body []byte, err error) {
		if again {
			if base, err = s.decoded.catalog(stored); err != nil {
				return nil, err
			}
		}
		if next, err = change(*base.Catalog); err != nil {
			return nil, err
		}
		return json.Marshal(next)
	})
	if err != nil {
		return base, err
	}
	return CatalogRecord{&next, written.Revision}, nil
}

// Credential reads an account's sealed credential; the zero SealedRecord if it has none.
func (s *Store) Credential(ctx context.Context, id account.ID) (SealedRecord, error) {
	v, err := s.Read(ctx, Query{Credentials: []account.ID{id}})
	return v.Credentials[id], err
}

// PutCredential writes a sealed credential if the stored revision is the one given (0:
// none yet). It returns the stored record and whether it was ours.
func (s *Store) PutCredential(ctx context.Context, id account.ID, sealed []byte, revision int64) (SealedRecord, bool, error) {
	stored, ours, err := s.put(ctx, "credential", Record{Key: Key{KindCredential, string(id)}, Body: sealed}, Condition{Revision: revision})
	return SealedRecord{stored.Body, stored.Revision}, ours, err
}
