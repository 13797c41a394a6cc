package dynamostore_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"holdfast/internal/store"
	"holdfast/internal/test/awstest"
)

// What a call costs beside what DynamoDB itself takes: the table is MiniStack's.

func BenchmarkGet7(b *testing.B) {
	endpoint := awstest.StartMiniStack(b, false)
	backend := open(endpoint, newTable(b, endpoint))
	var keys []store.Key
	for i := range 7 {
		k := store.Key{Kind: store.KindState, ID: fmt.Sprint(i)}
		keys = append(keys, k)
		if _, err := backend.Put(b.Context(), store.Record{Key: k, Body: make([]byte, 600)}, store.Condition{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		within(b, func(ctx context.Context) error { _, err := backend.Get(ctx, keys); return err })
	}
}

func BenchmarkPut(b *testing.B) {
	endpoint := awstest.StartMiniStack(b, false)
	backend := open(endpoint, newTable(b, endpoint))
	r := store.Record{Key: store.Key{Kind: store.KindPin, ID: "id"}, Body: make([]byte, 200), ExpiresAt: time.Now().Add(time.Hour)}
	b.ReportAllocs()
	for b.Loop() {
		within(b, func(ctx context.Context) (err error) {
			r, err = backend.Put(ctx, r, store.Condition{Revision: r.Revision})
			return err
		})
	}
}

func within(b *testing.B, call func(context.Context) error) {
	ctx, cancel := context.WithTimeout(b.Context(), store.CallTimeout)
	defer cancel()
	if err := call(ctx); err != nil {
		b.Fatal(err)
	}
}
