package memstore_test

import (
	"testing"

	"holdfast/internal/store"
	"holdfast/internal/store/memstore"
	"holdfast/internal/store/storetest"
)

func TestConformance(t *testing.T) {
	b := memstore.New()
	storetest.Run(t, storetest.Harness{Open: func(*testing.T) store.Backend { return b }})
}
