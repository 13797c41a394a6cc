package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"holdfast/internal/core/event"
)

const (
	// EventsFor is how long events are kept.
	EventsFor = 30 * day
	// mostEvents bounds a day's events. Of those beyond it the number is kept.
	mostEvents = 1500
)

// eventsOfDay is the stored form.
type eventsOfDay struct {
	Events []event.Event `json:"events"`
	// Dropped counts the events for which there was no room.
	Dropped int `json:"dropped,omitempty"`
}

// add adds an event, unless it is there: two processes may notice one thing.
func (d *eventsOfDay) add(e event.Event) {
	switch {
	case slices.ContainsFunc(d.Events, func(have event.Event) bool { return have == e }):
	case len(d.Events) >= mostEvents:
		d.Dropped++
	default:
		d.Events = append(d.Events, e)
	}
}

// Note has events wait for WriteEvents.
func (s *Store) Note(events ...event.Event) { s.events.Add(events...) }

// Noted reports whether events wait to be written.
func (s *Store) Noted() bool { return s.events.Any() }

// WriteEvents writes what has happened since the last time, one read and one write for each
// day that the events are of. What could not be written is written the next time.
func (s *Store) WriteEvents(ctx context.Context, now time.Time) error {
	days := map[Key][]event.Event{}
	for _, e := range s.events.Take() {
		if e.At.IsZero() {
			e.At = now
		}
		e.At, e.Until = e.At.UTC().Truncate(time.Second), e.Until.UTC().Truncate(time.Second)
		if e.Until.Year() <= 1 {
			e.Until = time.Time{}
		}
		key := eventKey(e.At)
		days[key] = append(days[key], e)
	}
	var failed error
	for key, events := range days {
		if err := s.addEvents(ctx, key, events); err != nil {
			s.events.Add(events...)
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

func (s *Store) addEvents(ctx context.Context, key Key, events []event.Event) error {
	at, err := time.Parse(time.DateOnly, key.ID)
	if err != nil {
		return err
	}
	_, err = s.reread(ctx, "events", Record{Key: key, DeleteAfter: at.Add(day + EventsFor)}, func(stored Record) ([]byte, error) {
		d, err := eventsIn(stored)
		if err != nil {
			return nil, err
		}
		for _, e := range events {
			d.add(e)
		}
		return json.Marshal(d)
	})
	return err
}

// Events are those from since to now, the oldest first, and how many there was no room for.
func (s *Store) Events(ctx context.Context, since, now time.Time) (events []event.Event, dropped int, err error) {
	if oldest := now.Add(-EventsFor); since.Before(oldest) {
		since = oldest
	}
	var keys []Key
	for at := since.UTC().Truncate(day); !at.After(now); at = at.Add(day) {
		keys = append(keys, eventKey(at))
	}
	if len(keys) == 0 {
		return nil, 0, nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.within)
	defer cancel()
	records, err := s.backend.Get(ctx, keys)
	if err != nil {
		return nil, 0, fmt.Errorf("read events: %w", err)
	}
	for _, r := range records {
		d, err := eventsIn(r)
		if err != nil {
			return nil, 0, err
		}
		dropped += d.Dropped
		for _, e := range d.Events {
			if !e.At.Before(since) && !e.At.After(now) {
				events = append(events, e)
			}
		}
	}
	slices.SortStableFunc(events, func(a, b event.Event) int { return a.At.Compare(b.At) })
	return events, dropped, nil
}

func eventsIn(stored Record) (eventsOfDay, error) {
	d := eventsOfDay{Events: []event.Event{}}
	if stored.Revision == 0 {
		return d, nil
	}
	if json.Unmarshal(stored.Body, &d) != nil {
		return eventsOfDay{Events: []event.Event{}}, nil // a day that cannot be read is begun anew
	}
	for i := range d.Events {
		d.Events[i].At, d.Events[i].Until = d.Events[i].At.UTC(), d.Events[i].Until.UTC()
	}
	return d, nil
}

func eventKey(at time.Time) Key {
	return Key{KindEvent, at.UTC().Format(time.DateOnly)}
}
