package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"holdfast/internal/core/usage"
)

const (
	// UsageHours is how long usage is kept by the hour, and UsageDays how long by the day.
	UsageHours = 8 * day
	UsageDays  = 90 * day
)

// UsageSpan is what was used in an hour or a day of UTC.
type UsageSpan struct {
	From   time.Time
	Length time.Duration
	Rows   usage.Rows
}

// AddUsage keeps a batch of a process, in its hour and in its day: one read and two
// writes. A batch that is kept already is not counted again, so an AddUsage
// that failed may be repeated.
func (s *Store) AddUsage(ctx context.Context, process string, b usage.Batch) error {
	ctx, cancel := context.WithTimeout(ctx, s.within)
	defer cancel()
	at := b.Hour.UTC()
	hour, whole := hourKey(at), dayKey(at)
	records, err := s.backend.Get(ctx, []Key{hour, whole})
	if err != nil {
		return fmt.Errorf("read usage: %w", err)
	}
	stored := map[Key]Record{hour: {Key: hour}, whole: {Key: whole}}
	for _, r := range records {
		stored[r.Key] = r
	}
	if err := s.takeUsage(ctx, stored[hour], at.Add(UsageHours), process, b); err != nil {
		return err
	}
	return s.takeUsage(ctx, stored[whole], at.Truncate(day).Add(UsageDays), process, b)
}

// takeUsage counts a batch into a record, of which stored is what was read.
func (s *Store) takeUsage(ctx context.Context, stored Record, until time.Time, process string, b usage.Batch) error {
	stored.DeleteAfter = until
	_, err := s.rewrite(ctx, "usage", stored, func(stored Record, _ bool) ([]byte, error) {
		r, err := usageOf(stored)
		if err != nil {
			return nil, err
		}
		return marshal(&r, r.Take(process, b))
	})
	return err
}

// Usage reads what was used from since to now: by the hour as long as hours are kept, and by
// whole days before that, the oldest first. It reads one record for each hour and day.
func (s *Store) Usage(ctx context.Context, since, now time.Time) ([]UsageSpan, error) {
	since, now = since.UTC(), now.UTC()
	if oldest := now.Add(-UsageDays); since.Before(oldest) {
		since = oldest
	}
	hoursFrom := now.Add(-UsageHours + day).Truncate(day)
	var keys []Key
	spans := map[Key]UsageSpan{}
	add := func(key Key, from time.Time, length time.Duration) {
		keys = append(keys, key)
		spans[key] = UsageSpan{From: from, Length: length}
	}
	for at := since.Truncate(day); at.Before(hoursFrom); at = at.Add(day) {
		add(dayKey(at), at, day)
	}
	first := since.Truncate(time.Hour)
	if first.Before(hoursFrom) {
		first = hoursFrom
	}
	for at := first; !at.After(now); at = at.Add(time.Hour) {
		add(hourKey(at), at, time.Hour)
	}
	ctx, cancel := context.WithTimeout(ctx, s.within)
	defer cancel()
	records, err := s.backend.Get(ctx, keys)
	if err != nil {
		return nil, fmt.Errorf("read usage: %w", err)
	}
	read := map[Key]usage.Rows{}
	for _, stored := range records {
		r, err := usageOf(stored)
		if err != nil {
			return nil, err
		}
		read[stored.Key] = r.Rows
	}
	var all []UsageSpan
	for _, key := range keys {
		if rows := read[key]; len(rows) > 0 {
			span := spans[key]
			span.Rows = rows
			all = append(all, span)
		}
	}
	return all, nil
}

func usageOf(stored Record) (usage.Record, error) {
	var r usage.Record
	if stored.Revision == 0 {
		return r, nil
	}
	if json.Unmarshal(stored.Body, &r) != nil {
		return usage.Record{}, nil // an hour that cannot be read is begun anew
	}
	return r, nil
}

func hourKey(at time.Time) Key {
	return Key{KindUsage, at.UTC().Format("2006-01-02T15")}
}

func dayKey(at time.Time) Key {
	return Key{KindUsage, at.UTC().Format(time.DateOnly)}
}
