package store

import "context"

// keyCheck is beside the wrapped data key of other stores, and no part of it.
var keyCheck = Key{KindDataKey, "check"}

// KeyCheck reads the sealed value by which a data key is recognized as the store's; the
// zero SealedRecord if none is kept yet.
func (s *Store) KeyCheck(ctx context.Context) (SealedRecord, error) {
	r, err := s.one(ctx, "the data key's check", keyCheck)
	return SealedRecord{r.Body, r.Revision}, err
}

// KeepKeyCheck writes the sealed value unless one is kept already, and returns the one
// that is kept then.
func (s *Store) KeepKeyCheck(ctx context.Context, sealed []byte) (SealedRecord, error) {
	stored, _, err := s.put(ctx, "the data key's check", Record{Key: keyCheck, Body: sealed}, Condition{})
	return SealedRecord{stored.Body, stored.Revision}, err
}
