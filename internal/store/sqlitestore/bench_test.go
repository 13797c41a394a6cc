package sqlitestore_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"holdfast/internal/store"
)

// requestKeys fills a store and returns what a request about three accounts reads: the
// catalog, its pin, and the states and credentials of the accounts.
func requestKeys(b *testing.B, s store.Backend) []store.Key {
	keys := []store.Key{{Kind: store.KindCatalog, ID: "catalog"}, {Kind: store.KindPin, ID: fmt.Sprintf("%064x", 500)}}
	for i := range 3 {
		id := fmt.Sprintf("account%d", i)
		keys = append(keys, store.Key{Kind: store.KindState, ID: id}, store.Key{Kind: store.KindCredential, ID: id})
	}
	keys = keys[:7]
	for i := range 1000 {
		write(b, s, store.Record{Key: store.Key{Kind: store.KindPin, ID: fmt.Sprintf("%064x", i)}, Body: bytes.Repeat([]byte("p"), 300)}, 0)
	}
	for _, k := range keys {
		if k.Kind != store.KindPin {
			write(b, s, store.Record{Key: k, Body: bytes.Repeat([]byte("x"), 1000)}, 0)
		}
	}
	return keys
}

func write(b *testing.B, s store.Backend, r store.Record, revision int64) store.Record {
	stored, err := s.Put(context.Background(), r, store.Condition{Revision: revision})
	if err != nil {
		b.Fatal(err)
	}
	return stored
}

func read(b *testing.B, s store.Backend, keys []store.Key) {
	// A request's context has a deadline.
	ctx, cancel := context.WithTimeout(context.Background(), store.CallTimeout)
	defer cancel()
	found, err := s.Get(ctx, keys)
	if err != nil || len(found) != len(keys) {
		b.Fatalf("got %d records and error %v, want %d and none", len(found), err, len(keys))
	}
}

// BenchmarkGet reads the seven keys of a request.
func BenchmarkGet(b *testing.B) {
	b.Run("unchanged", func(b *testing.B) {
		s := open(b, b.TempDir())
		defer s.Close()
		keys := requestKeys(b, s)
		b.ReportAllocs()
		for b.Loop() {
			read(b, s, keys)
		}
	})
	b.Run("parallel", func(b *testing.B) {
		s := open(b, b.TempDir())
		defer s.Close()
		keys := requestKeys(b, s)
		b.ReportAllocs()
		b.ResetTimer()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				read(b, s, keys)
			}
		})
	})
	b.Run("changed-by-another", func(b *testing.B) { // includes the other's write
		dir := b.TempDir()
		s, other := open(b, dir), open(b, dir)
		defer s.Close()
		defer other.Close()
		keys := requestKeys(b, s)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := other.Add(context.Background(), store.Key{Kind: store.KindState, ID: "account0"}, 0); err != nil {
				b.Fatal(err)
			}
			read(b, s, keys)
		}
	})
}

// BenchmarkPut touches a pin, and replaces a credential, which is flushed to the disk.
func BenchmarkPut(b *testing.B) {
	for _, kind := range []store.Kind{store.KindPin, store.KindCredential} {
		b.Run(string(kind), func(b *testing.B) {
			s := open(b, b.TempDir())
			defer s.Close()
			requestKeys(b, s)
			r := store.Record{Key: store.Key{Kind: kind, ID: fmt.Sprintf("%064x", 5000)}, Body: bytes.Repeat([]byte("p"), 300), ExpiresAt: time.Now(), DeleteAfter: time.Now().Add(time.Hour)}
			revision := int64(0)
			b.ReportAllocs()
			for b.Loop() {
				revision = write(b, s, r, revision).Revision
			}
		})
	}
}

// BenchmarkAdd counts a placement.
func BenchmarkAdd(b *testing.B) {
	s := open(b, b.TempDir())
	defer s.Close()
	requestKeys(b, s)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Add(context.Background(), store.Key{Kind: store.KindState, ID: "account0"}, 0); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOpen opens a store that is there.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	s := open(b, dir)
	requestKeys(b, s)
	defer s.Close() // so that no opened one is the last to close
	b.ReportAllocs()
	for b.Loop() {
		if err := open(b, dir).Close(); err != nil {
			b.Fatal(err)
		}
	}
}
