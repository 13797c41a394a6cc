package dynamostore_test

import (
	"testing"
	"time"

	"holdfast/internal/store"
	"holdfast/internal/store/dynamostore"
)

// The sums are of the attributes that the package's comment lists.
func TestSize(t *testing.T) {
	key := store.Key{Kind: store.KindPin, ID: "0123456789"}
	for _, c := range []struct {
		name string
		r    store.Record
		want int
	}{
		{"a count alone", store.Record{Key: key, Count: 7}, 2 + 14 + 5 + 2},
		{"put once", store.Record{Key: key, Revision: 1, Body: make([]byte, 100)}, 2 + 14 + 8 + 2 + 4 + 100 + 5 + 9},
		{"put often", store.Record{Key: key, Revision: 12345, Body: make([]byte, 100)}, 2 + 14 + 8 + 4 + 4 + 100 + 5 + 9},
		{
			"with an end", store.Record{Key: key, Revision: 1, Body: make([]byte, 100), ExpiresAt: time.Date(2027, 3, 4, 12, 0, 0, 0, time.UTC)},
			2 + 14 + 8 + 2 + 4 + 100 + 5 + 9 + 10 + 8 + 3 + 6,
		},
	} {
		if got := dynamostore.Size(c.r); got != c.want {
			t.Errorf("%s: got %d, want %d", c.name, got, c.want)
		}
	}
}
