package sqlitestore_test

import (
	"testing"

	"holdfast/internal/store"
	"holdfast/internal/store/sqlitestore"
	"holdfast/internal/store/storetest"
)

func open(t testing.TB, dir string) *sqlitestore.Backend {
	t.Helper()
	b, err := sqlitestore.Open(dir)
	if err != nil {
		t.Fatalf("open: got %v, want no error", err)
	}
	return b
}

func TestConformance(t *testing.T) {
	dir := t.TempDir()
	storetest.Run(t, storetest.Harness{Open: func(t *testing.T) store.Backend { return open(t, dir) }})
}
