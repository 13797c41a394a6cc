package main

import (
	"context"
	"sync"

	"holdfast/internal/store"
	"holdfast/internal/store/dynamostore"
	"holdfast/internal/tool/cost"
)

// operations are what a store was asked for.
type operations struct {
	calls         int // round trips
	reads, writes float64
}

// ledger is a backend that counts what it is asked for, in DynamoDB's units.
type ledger struct {
	store.Backend

	mu  sync.Mutex
	sum operations
}

// take returns what was asked for since the last take.
func (l *ledger) take() operations {
	l.mu.Lock()
	defer l.mu.Unlock()
	sum := l.sum
	l.sum = operations{}
	return sum
}

func (l *ledger) add(reads, writes float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sum.calls++
	l.sum.reads += reads
	l.sum.writes += writes
}

// size is what is stored under a key now, in bytes; 0 if nothing is.
func (l *ledger) size(ctx context.Context, key store.Key) int {
	found, err := l.Backend.Get(ctx, []store.Key{key})
	if err != nil || len(found) == 0 {
		return 0
	}
	return dynamostore.Size(found[0])
}

func (l *ledger) Get(ctx context.Context, keys []store.Key) ([]store.Record, error) {
	units := 0.0
	for _, key := range keys {
		units += cost.ReadUnits(l.size(ctx, key))
	}
	l.add(units, 0)
	return l.Backend.Get(ctx, keys)
}

func (l *ledger) Put(ctx context.Context, r store.Record, cond store.Condition) (store.Record, error) {
	before := l.size(ctx, r.Key)
	stored, err := l.Backend.Put(ctx, r, cond)
	l.add(0, cost.WriteUnits(before, dynamostore.Size(stored)))
	return stored, err
}

func (l *ledger) Add(ctx context.Context, key store.Key, limit int64) (int64, error) {
	before := l.size(ctx, key)
	n, err := l.Backend.Add(ctx, key, limit)
	l.add(0, cost.WriteUnits(before, l.size(ctx, key)))
	return n, err
}

func (l *ledger) Delete(ctx context.Context, key store.Key, revision int64) error {
	l.add(0, cost.WriteUnits(l.size(ctx, key), 0))
	return l.Backend.Delete(ctx, key, revision)
}
