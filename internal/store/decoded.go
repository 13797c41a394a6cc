package store

import (
	"encoding/json"
	"fmt"
	"sync"

	"holdfast/internal/account"
	"holdfast/internal/catalog"
)

// decoded remembers the newest decoding of the records that every request reads, so that
// a request pays for decoding only when one changed. It never answers for the store:
// what it holds is looked up by the revision that the store just gave.
type decoded struct {
	mu      sync.RWMutex
	current CatalogRecord
	states  map[string]StateRecord
}

func newDecoded() *decoded { return &decoded{states: map[string]StateRecord{}} }

func (d *decoded) catalog(r Record) (CatalogRecord, error) {
	d.mu.RLock()
	c := d.current
	d.mu.RUnlock()
	if c.Catalog != nil && c.Revision == r.Revision {
		return c, nil
	}
	c = CatalogRecord{Catalog: &catalog.Catalog{}, Revision: r.Revision}
	if r.Revision > 0 {
		if err := json.Unmarshal(r.Body, c.Catalog); err != nil {
			return CatalogRecord{}, fmt.Errorf("decode the catalog: %w", err)
		}
	}
	d.mu.Lock()
	d.current = c
	d.mu.Unlock()
	return c, nil
}

func (d *decoded) state(r Record) (StateRecord, error) {
	d.mu.RLock()
	st, ok := d.states[r.ID]
	d.mu.RUnlock()
	if !ok || st.Revision != r.Revision {
		st = StateRecord{Revision: r.Revision}
		if r.Revision > 0 {
			if err := json.Unmarshal(r.Body, &st.State); err != nil {
				return StateRecord{}, fmt.Errorf("decode state of %s: %w", account.ID(r.ID), err)
			}
		}
		d.mu.Lock()
		d.states[r.ID] = st
		d.mu.Unlock()
	}
	st.Placed = r.Count
	return st, nil
}
