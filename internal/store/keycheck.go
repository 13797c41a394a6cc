package store

import (
	"context"
	"errors"
	"fmt"
)

// keyCheck is beside the wrapped data key of other stores, and no part of it.
var keyCheck = Key{KindDataKey, "check"}

// KeyCheck reads the sealed value by which a data key is recognized as the store's; the
// zero SealedRecord if none is kept yet.
func (s *Store) KeyCheck(ctx context.Context) (SealedRecord, error) {
	ctx, cancel := context.WithTimeout(ctx, s.within)
	defer cancel()
	records, err := s.backend.Get(ctx, []Key{keyCheck})
	if err != nil {
		return SealedRecord{}, fmt.Errorf("read the data key's check: %w", err)
	}
	if len(records) == 0 {
		return SealedRecord{}, nil
	}
	return SealedRecord{records[0].Body, records[0].Revision}, nil
}

// KeepKeyCheck writes the sealed value unless one is kept already, and returns the one
// that is kept then.
func (s *Store) KeepKeyCheck(ctx context.Context, sealed []byte) (SealedRecord, error) {
	ctx, cancel := context.WithTimeout(ctx, s.within)
	defer cancel()
	stored, err := s.backend.Put(ctx, Record{Key: keyCheck, Body: sealed}, Condition{})
	if err != nil && !errors.Is(err, ErrConflict) {
		return SealedRecord{}, fmt.Errorf("write the data key's check: %w", err)
	}
	return SealedRecord{stored.Body, stored.Revision}, nil
}
