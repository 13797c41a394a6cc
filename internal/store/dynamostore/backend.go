package dynamostore

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/internal/store"
)

var _ store.Backend = (*Backend)(nil)

// Backend is one table. Make one with New.
type Backend struct {
	client  *dynamodb.Client
	retryer *retry.Standard
	table   string
}

// New returns a backend on a table, which must exist. How often a call is tried is the
// backend's own business; all else is the client's, which should be one that Client made.
func New(client *dynamodb.Client, table string) *Backend {
	return &Backend{client: client, retryer: newRetryer(), table: table}
}

func (b *Backend) call(once bool) *call { return &call{Standard: b.retryer, once: once} }

// within gives a context its end.
func within(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, store.CallTimeout)
}

// batch is how many keys DynamoDB takes at once.
const batch = 100

// Get implements store.Backend.
func (b *Backend) Get(ctx context.Context, keys []store.Key) ([]store.Record, error) {
	ctx, cancel := within(ctx)
	defer cancel()
	found := make([]store.Record, 0, len(keys))
	for len(keys) > 0 {
		n := min(len(keys), batch)
		asked := make([]item, n)
		for i, key := range keys[:n] {
			asked[i] = primary(key)
		}
		keys = keys[n:]
		for round := 0; len(asked) > 0; round++ {
			if round > 0 {
				if err := pause(ctx, round); err != nil {
					return nil, b.failed(err)
				}
			}
			var err error
			if found, asked, err = b.get(ctx, found, asked); err != nil {
				return nil, b.failed(err)
			}
		}
	}
	return found, nil
}

// get adds what exists of a batch and returns the keys that were left unprocessed.
func (b *Backend) get(ctx context.Context, found []store.Record, asked []item) ([]store.Record, []item, error) {
	out, err := b.client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{
		RequestItems: map[string]types.KeysAndAttributes{b.table: {Keys: asked, ConsistentRead: aws.Bool(true)}},
	}, b.call(false).use)
	if err != nil {
		return nil, nil, err
	}
	for _, items := range out.Responses { // of the one table
		for _, it := range items {
			r, err := decode(it)
			if err != nil {
				return nil, nil, err
			}
			found = append(found, r)
		}
	}
	var left []item
	for _, unprocessed := range out.UnprocessedKeys {
		left = append(left, unprocessed.Keys...)
	}
	return found, left, nil
}

// pause waits before keys left unprocessed are asked for again, longer each time.
func pause(ctx context.Context, round int) error {
	longest := (5 * time.Millisecond) << min(round, 5)
	timer := time.NewTimer(longest/4 + time.Duration(rand.Int64N(int64(longest))))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// List implements store.Backend. It reads the whole table, and every page of it is given
// its own time if the context has no end.
func (b *Backend) List(ctx context.Context, kind store.Kind) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		in := &dynamodb.ScanInput{
			TableName: &b.table, ConsistentRead: aws.Bool(true),
			FilterExpression:         aws.String("begins_with(#pk, :kind)"),
			ExpressionAttributeNames: names(attrKey),
			ExpressionAttributeValues: item{
				":kind": &types.AttributeValueMemberS{Value: prefix(kind)},
			},
		}
		for {
			page, err := b.scan(ctx, in)
			if err != nil {
				yield(store.Record{}, fmt.Errorf("list records: %w", b.failed(err)))
				return
			}
			for _, it := range page.Items {
				r, err := decode(it)
				if !yield(r, err) || err != nil {
					return
				}
			}
			if in.ExclusiveStartKey = page.LastEvaluatedKey; len(in.ExclusiveStartKey) == 0 {
				return
			}
		}
	}
}

func (b *Backend) scan(ctx context.Context, in *dynamodb.ScanInput) (*dynamodb.ScanOutput, error) {
	ctx, cancel := within(ctx)
	defer cancel()
	return b.client.Scan(ctx, in, b.call(false).use)
}

// Close implements store.Backend. The client keeps its connections: others may use it.
func (b *Backend) Close() error { return nil }
