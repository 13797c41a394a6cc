package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/object"
	"holdfast/internal/core/pin"
	"holdfast/internal/core/serving"
)

// decoded remembers what the records that requests read decode to, so that a request pays
// for decoding only when one changed. It never answers for the store: a remembered value
// is used only for the very bytes that the store just gave. Revisions alone would not do,
// since those of a record that was removed and made again begin anew. Values are shared
// and MUST NOT be changed.
//
// A record that cannot be read is its own affair: the account, the conversation or the object
// that it is of goes without, and nothing else. It keeps its revision, so that the next write
// takes its place. Only the configuration cannot be done without.
type decoded struct {
	catalogs memory[*catalog.Catalog]
	states   memory[account.State]
	pins     memory[pin.Record]
	servings memory[serving.Record]
	owners   memory[object.Record]
}

// memory holds decoded values by the records' ids.
type memory[T any] struct {
	mu     sync.RWMutex
	values map[string]remembered[T]
}

type remembered[T any] struct {
	body  []byte
	value T
}

// maxRemembered bounds a memory; past it all is forgotten and comes back by use.
const maxRemembered = 4096

func newDecoded() *decoded { return &decoded{} }

// of returns what a record decodes to.
func (m *memory[T]) of(r Record) (T, error) {
	m.mu.RLock()
	known, ok := m.values[r.ID]
	m.mu.RUnlock()
	if ok && bytes.Equal(known.body, r.Body) {
		return known.value, nil
	}
	var value T
	if err := json.Unmarshal(r.Body, &value); err != nil {
		return value, fmt.Errorf("decode %s of %s: %w", r.Kind, r.ID, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.values == nil || len(m.values) >= maxRemembered {
		m.values = map[string]remembered[T]{}
	}
	m.values[r.ID] = remembered[T]{r.Body, value}
	return value, nil
}

func (d *decoded) catalog(r Record) (CatalogRecord, error) {
	if r.Revision == 0 {
		return CatalogRecord{Catalog: &catalog.Catalog{}}, nil
	}
	c, err := d.catalogs.of(r)
	return CatalogRecord{Catalog: c, Revision: r.Revision}, err
}

func (d *decoded) state(r Record) (StateRecord, error) {
	if r.Revision == 0 { // counted, and nothing learnt yet
		return StateRecord{Placed: r.Count}, nil
	}
	s, err := d.states.of(r)
	if err != nil {
		s = account.Unreadable(account.State{}, account.UnreadableState)
	}
	return StateRecord{State: s, Placed: r.Count, Revision: r.Revision}, nil
}

func (d *decoded) pin(r Record) (pin.Record, error) {
	p, err := d.pins.of(r)
	if err != nil {
		p = pin.Record{} // which has ended; its conversation is picked for as a new one
	}
	p.Revision = r.Revision
	return p, nil
}

func (d *decoded) serving(r Record) (ServingRecord, error) {
	s, err := d.servings.of(r)
	if err != nil {
		s = serving.Record{} // the next pick records who serves
	}
	return ServingRecord{Record: s, Revision: r.Revision}, nil
}

func (d *decoded) owner(r Record) (object.Record, error) {
	o, err := d.owners.of(r)
	if err != nil {
		o = object.Record{} // nobody is known to have the object
	}
	o.Revision = r.Revision
	return o, nil
}
