package cloud

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"

	"holdfast/internal/aws/datakey"
	"holdfast/internal/store"
	"holdfast/internal/store/dynamostore"
	"holdfast/internal/store/seal"
)

// openTimeout bounds one attempt to open the data key: two calls, each of which may be
// repeated.
const openTimeout = 10 * time.Second

// Table is a holdfast's table, with its data key. It is safe for use by several goroutines.
type Table struct {
	store.Backend
	// Client is that of the table.
	Client *dynamodb.Client

	name   string
	kms    *kms.Client
	kmsKey func(context.Context) (string, error)

	mu      sync.Mutex
	box     *seal.Box
	opening *opening
}

// opening is an attempt to open the data key, for all who wait for it.
type opening struct {
	done chan struct{}
	box  *seal.Box
	err  error
}

// Open returns a table. kmsKey finds the KMS key that wraps its data key, when first
// needed. Nobody is contacted.
func Open(cfg aws.Config, name string, kmsKey func(context.Context) (string, error)) *Table {
	client := dynamostore.Client(cfg)
	return &Table{
		Backend: dynamostore.New(client, name), Client: client, name: name, kmsKey: kmsKey,
		kms: kms.NewFromConfig(cfg, func(o *kms.Options) {
			o.HTTPClient = client.Options().HTTPClient // as impatient as the table's
			o.Retryer = retry.NewStandard(func(o *retry.StandardOptions) {
				o.MaxAttempts = 3
				o.MaxBackoff = 100 * time.Millisecond
			})
			o.RetryMaxAttempts = 0
		}),
	}
}

// Key names a KMS key that is known beforehand. An empty one is an error when needed.
func Key(id string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) {
		if id == "" {
			return "", errors.New("HOLDFAST_KMS_KEY_ID is not set: it names the KMS key that wraps the data key")
		}
		return id, nil
	}
}

// Box returns the box of the table's data key, which is made if none exists yet. The
// first call opens it and all others get the same; a caller whose context ends goes, and
// the opening goes on for whoever comes next. After an error the next call tries again.
//
// A function should call it once, on a goroutine, as soon as it starts: the connections
// are then there, and the box open, when the first request has been read. Where the
// process is frozen meanwhile, that attempt fails when it wakes up with the first request;
// so the failure of an attempt that had begun before a call is not the call's answer.
func (t *Table) Box(ctx context.Context) (*seal.Box, error) {
	box, before, err := t.await(ctx)
	if err != nil && before && ctx.Err() == nil {
		box, _, err = t.await(ctx)
	}
	return box, err
}

// await waits for the box or for one attempt, and reports whether that had begun before.
func (t *Table) await(ctx context.Context) (box *seal.Box, before bool, err error) {
	t.mu.Lock()
	if t.box != nil {
		defer t.mu.Unlock()
		return t.box, true, nil
	}
	o := t.opening
	if before = o != nil; !before {
		o = &opening{done: make(chan struct{})}
		t.opening = o
		go t.open(context.WithoutCancel(ctx), o)
	}
	t.mu.Unlock()
	select {
	case <-o.done:
		return o.box, before, o.err
	case <-ctx.Done():
		return nil, before, fmt.Errorf("open the data key: %w: %w", store.ErrUnavailable, ctx.Err())
	}
}

func (t *Table) open(ctx context.Context, o *opening) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	o.box, o.err = t.load(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.box, t.opening = o.box, nil
	close(o.done)
}

func (t *Table) load(ctx context.Context) (*seal.Box, error) {
	id, err := t.kmsKey(ctx)
	if err != nil {
		return nil, err
	}
	key, err := datakey.Source{Records: t.Backend, KMS: t.kms, KMSKey: id, Table: t.name}.Load(ctx)
	if err != nil {
		return nil, err
	}
	defer clear(key[:])
	return seal.New(key)
}
