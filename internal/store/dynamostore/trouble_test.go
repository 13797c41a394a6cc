package dynamostore_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"holdfast/internal/store"
	"holdfast/internal/store/dynamostore"
	"holdfast/internal/test/awstest"
)

// bench is a table seen through a front, as the code under test has it, and directly, as
// other processes do.
type bench struct {
	*awstest.Front
	table           string
	backend, others *dynamostore.Backend
	now             time.Time
}

func newBench(t *testing.T) *bench {
	t.Helper()
	endpoint := awstest.StartMiniStack(t, false)
	table := newTable(t, endpoint)
	front := awstest.NewFront(t, endpoint)
	return &bench{front, table, open(front.URL, table), open(endpoint, table), time.Now().UTC().Truncate(time.Millisecond)}
}

var key = store.Key{Kind: "kind", ID: "id"}

// stored is the record as it is, the zero Record if none exists.
func (b *bench) stored(t *testing.T) store.Record {
	t.Helper()
	found, err := b.others.Get(t.Context(), []store.Key{key})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		return store.Record{}
	}
	return found[0]
}

// put writes as another process.
func (b *bench) put(t *testing.T, body string, expires time.Time, revision int64) {
	t.Helper()
	if _, err := b.others.Put(t.Context(), store.Record{Key: key, Body: []byte(body), ExpiresAt: expires}, store.Condition{Revision: revision}); err != nil {
		t.Fatal(err)
	}
}

// remove deletes as another process.
func (b *bench) remove(t *testing.T, revision int64) {
	t.Helper()
	// A Delete whose answer breaks off is not repeated by the backend. MiniStack closes a
	// connection now and then; here nobody else writes, so it may be asked again.
	err := store.ErrUnavailable
	for try := 0; try < 5 && errors.Is(err, store.ErrUnavailable); try++ {
		err = b.others.Delete(t.Context(), key, revision)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (b *bench) count(t *testing.T) {
	t.Helper()
	if _, err := b.others.Add(t.Context(), key, 0); err != nil {
		t.Fatal(err)
	}
}

func (b *bench) checkCalls(t *testing.T, operation string, want int) {
	t.Helper()
	if got := b.Calls(); !maps.Equal(got, map[string]int{operation: want}) {
		t.Errorf("got calls %v, want %d of %s", got, want, operation)
	}
}

func brief(r store.Record) string {
	return fmt.Sprintf("revision %d, body %q, count %d", r.Revision, r.Body, r.Count)
}

type call struct {
	name, operation string
	do              func(context.Context, store.Backend) error
	after           string // the record when the call was applied
}

// calls are the calls of a backend, each on a record that was put once and counted once.
var calls = []call{
	{"Get", "BatchGetItem", func(ctx context.Context, b store.Backend) error {
		found, err := b.Get(ctx, []store.Key{key})
		if err == nil && len(found) != 1 {
			err = fmt.Errorf("%d records found", len(found))
		}
		return err
	}, before},
	{"Put", "UpdateItem", func(ctx context.Context, b store.Backend) error {
		r, err := b.Put(ctx, store.Record{Key: key, Body: []byte("second")}, store.Condition{Revision: 1})
		if err == nil && brief(r) != put {
			err = fmt.Errorf("told of %s", brief(r))
		}
		return err
	}, put},
	{"Add", "UpdateItem", func(ctx context.Context, b store.Backend) error {
		n, err := b.Add(ctx, key, 0)
		if err == nil && n != 2 {
			err = fmt.Errorf("told of a count of %d", n)
		}
		return err
	}, `revision 1, body "first", count 2`},
	{"AddBelowLimit", "UpdateItem", func(ctx context.Context, b store.Backend) error {
		n, err := b.Add(ctx, key, 2)
		if err == nil && n != 2 {
			err = fmt.Errorf("told of a count of %d", n)
		}
		return err
	}, `revision 1, body "first", count 2`},
	{"Delete", "DeleteItem", func(ctx context.Context, b store.Backend) error { return b.Delete(ctx, key, 1) }, gone},
	{"List", "Scan", func(ctx context.Context, b store.Backend) error {
		n := 0
		for _, err := range b.List(ctx, key.Kind) {
			if err != nil {
				return err
			}
			n++
		}
		if n != 1 {
			return fmt.Errorf("%d records listed", n)
		}
		return nil
	}, before},
}

const (
	before = `revision 1, body "first", count 1`
	put    = `revision 2, body "second", count 1`
	gone   = `revision 0, body "", count 0`
)

// prepare makes the record that calls start from.
func (b *bench) prepare(t *testing.T) {
	t.Helper()
	if r := b.stored(t); r.Revision > 0 || r.Count > 0 {
		b.remove(t, r.Revision)
	}
	b.put(t, "first", time.Time{}, 0)
	b.count(t)
	b.Calls()
}

// TestRefusals: what AWS refuses for the moment it has not applied. So every call is tried
// once more, and if that is refused too the store is unavailable and nothing has changed.
func TestRefusals(t *testing.T) {
	b := newBench(t)
	for _, code := range []string{
		"ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded", "TransactionConflictException",
	} {
		refuse := awstest.Refuse(http.StatusBadRequest, code)
		for _, c := range calls {
			t.Run(code+"/"+c.name, func(t *testing.T) {
				b.prepare(t)
				b.Next(c.operation, refuse, refuse)
				if err := c.do(t.Context(), b.backend); !errors.Is(err, store.ErrUnavailable) {
					t.Errorf("refused: got %v, want ErrUnavailable", err)
				}
				b.checkCalls(t, c.operation, 2)
				if got := brief(b.stored(t)); got != before {
					t.Errorf("refused: got %s, want %s", got, before)
				}
				b.Next(c.operation, refuse)
				if err := c.do(t.Context(), b.backend); err != nil {
					t.Errorf("refused once: got %v, want no error", err)
				}
				b.checkCalls(t, c.operation, 2)
				if got := brief(b.stored(t)); got != c.after {
					t.Errorf("refused once: got %s, want %s", got, c.after)
				}
			})
		}
	}
}

// TestNoAnswer: whether an attempt without an answer was applied is not known. What may be
// repeated is, and tells the truth; what may not be is left as it is.
func TestNoAnswer(t *testing.T) {
	b := newBench(t)
	for _, trouble := range []struct {
		name    string
		do      awstest.Trouble
		applied bool
	}{
		{"CutBefore", awstest.Lose, false},
		{"CutAfter", awstest.ApplyAndCut, true},
		{"CutInTheAnswer", awstest.ApplyAndCutShort, true},
		{"InternalServerErrorBefore", awstest.Refuse(http.StatusInternalServerError, "InternalServerError"), false},
		{"InternalServerErrorAfter", awstest.ApplyAndRefuse(http.StatusInternalServerError, "InternalServerError"), true},
	} {
		for _, c := range calls {
			t.Run(trouble.name+"/"+c.name, func(t *testing.T) { noAnswer(t, b, c, trouble.do, trouble.applied) })
		}
	}
}

// TestTimeout: the same where the connection stays open and no answer comes.
func TestTimeout(t *testing.T) {
	for _, trouble := range []struct {
		name    string
		do      awstest.Trouble
		applied bool
	}{
		{"DidNotHappen", awstest.Ignore, false},
		{"DidHappen", awstest.ApplyAndIgnore, true},
	} {
		for _, c := range calls {
			t.Run(trouble.name+"/"+c.name, func(t *testing.T) {
				t.Parallel() // each waits for most of a second
				b := newBench(t)
				b.backend = dynamostore.New(dynamostore.Client(awstest.Config(b.URL)), b.table)
				noAnswer(t, b, c, trouble.do, trouble.applied)
			})
		}
	}
}

func noAnswer(t *testing.T, b *bench, c call, trouble awstest.Trouble, applied bool) {
	t.Helper()
	repeated := c.operation == "BatchGetItem" || c.operation == "Scan" || c.name == "Put"
	b.prepare(t)
	b.Next(c.operation, trouble)
	err := c.do(t.Context(), b.backend)
	if repeated {
		if err != nil {
			t.Errorf("got %v, want no error", err)
		}
		b.checkCalls(t, c.operation, 2)
	} else {
		if !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("got %v, want ErrUnavailable", err)
		}
		b.checkCalls(t, c.operation, 1)
	}
	want := before
	if repeated || applied {
		want = c.after
	}
	if got := brief(b.stored(t)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestAppliedTwiceOver: two attempts of one Put, neither answered.
func TestAppliedTwiceOver(t *testing.T) {
	b := newBench(t)
	b.prepare(t)
	b.Next("UpdateItem", awstest.ApplyAndCut, awstest.ApplyAndCut)
	_, err := b.backend.Put(t.Context(), store.Record{Key: key, Body: []byte("second")}, store.Condition{Revision: 1})
	if !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
	if got := brief(b.stored(t)); got != put {
		t.Errorf("got %s, want %s", got, put)
	}
}

// TestConflictWithOurselves: the second attempt of a Put is refused. By whom, it has to
// tell from the record that comes with the refusal.
func TestConflictWithOurselves(t *testing.T) {
	b := newBench(t)
	past := b.now.Add(-time.Hour)
	nothing := func() {}
	for _, c := range []struct {
		name    string
		prepare func(*testing.T)
		cond    store.Condition
		applied bool             // the first attempt
		then    func(*testing.T) // what others do before the second
		err     error            // of the call
		told    string           // by the call
	}{
		{"Created", nil, store.Condition{}, true, nil, nil, `revision 1, body "ours", count 0`},
		{"TakenOver", func(t *testing.T) { b.put(t, "old", past, 0) }, store.Condition{ExpiredBy: b.now}, true, nil, nil, `revision 2, body "ours", count 0`},
		{"Replaced", func(t *testing.T) { b.put(t, "old", past, 0) }, store.Condition{Revision: 1}, true, nil, nil, `revision 2, body "ours", count 0`},
		{"CreatedThenCounted", nil, store.Condition{}, true, b.count, nil, `revision 1, body "ours", count 1`},
		{"CreatedThenReplaced", nil, store.Condition{}, true, func(t *testing.T) { b.put(t, "theirs", past, 1) }, store.ErrUnavailable, gone},
		{"ReplacedThenReplaced", func(t *testing.T) { b.put(t, "old", past, 0) }, store.Condition{Revision: 1}, true, func(t *testing.T) { b.put(t, "theirs", past, 2) }, store.ErrUnavailable, gone},
		{"ReplacedThenDeleted", func(t *testing.T) { b.put(t, "old", past, 0) }, store.Condition{Revision: 1}, true, func(t *testing.T) { b.remove(t, 2) }, store.ErrUnavailable, gone},
		{"LostThenCreated", nil, store.Condition{}, false, func(t *testing.T) { b.put(t, "theirs", past, 0) }, store.ErrConflict, `revision 1, body "theirs", count 0`},
		{"LostThenClaimed", nil, store.Condition{ExpiredBy: b.now}, false, func(t *testing.T) { b.put(t, "theirs", b.now.Add(time.Hour), 0) }, store.ErrConflict, `revision 1, body "theirs", count 0`},
		{"LostThenReplaced", func(t *testing.T) { b.put(t, "old", past, 0) }, store.Condition{Revision: 1}, false, func(t *testing.T) { b.put(t, "theirs", past, 1) }, store.ErrConflict, `revision 2, body "theirs", count 0`},
		{"LostThenDeleted", func(t *testing.T) { b.put(t, "old", past, 0) }, store.Condition{Revision: 1}, false, func(t *testing.T) { b.remove(t, 1) }, store.ErrUnavailable, gone},
		// It could be that ours came first: two take-overs also make revision 3.
		{"LostThenTakenOver", func(t *testing.T) { b.put(t, "old", past, 0) }, store.Condition{ExpiredBy: b.now}, false, func(t *testing.T) { b.put(t, "theirs", b.now.Add(time.Hour), 1) }, store.ErrUnavailable, gone},
	} {
		t.Run(c.name, func(t *testing.T) {
			if r := b.stored(t); r.Revision > 0 {
				b.remove(t, r.Revision)
			}
			if c.prepare != nil {
				c.prepare(t)
			}
			b.Calls()
			then := nothing
			if c.then != nil {
				then = func() { c.then(t) }
			}
			if c.applied {
				b.Next("UpdateItem", awstest.ApplyThen(then))
			} else {
				b.Next("UpdateItem", awstest.LoseThen(then))
			}
			r, err := b.backend.Put(t.Context(), store.Record{Key: key, Body: []byte("ours"), ExpiresAt: b.now.Add(time.Hour)}, c.cond)
			if !errors.Is(err, c.err) {
				t.Errorf("got error %v, want %v", err, c.err)
			}
			if got := brief(r); got != c.told {
				t.Errorf("got %s, want %s", got, c.told)
			}
			b.checkCalls(t, "UpdateItem", 2)
		})
	}
}

// TestNothingLostInTrouble lets writers race while every third attempt meets trouble. A Put
// that succeeded is there, one that lost is not, and one that got no answer is one of both.
func TestNothingLostInTrouble(t *testing.T) {
	b := newBench(t)
	troubles := []awstest.Trouble{
		awstest.Lose, awstest.ApplyAndCut, awstest.ApplyAndCutShort,
		awstest.Refuse(http.StatusBadRequest, "ThrottlingException"),
		awstest.ApplyAndRefuse(http.StatusInternalServerError, "InternalServerError"),
	}
	b.Always("UpdateItem", func(x *awstest.Exchange) {
		if rand.IntN(3) == 0 {
			troubles[rand.IntN(len(troubles))](x)
			return
		}
		x.Pass()
	})
	const writers, rounds = 4, 40
	var mu sync.Mutex
	var won, unknown int64
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			var seen store.Record
			for range rounds {
				// The body is the sum of all revisions that were made from one another.
				n, _ := strconv.ParseInt(string(seen.Body), 10, 64)
				r, err := b.backend.Put(t.Context(), store.Record{Key: key, Body: fmt.Append(nil, n+1)}, store.Condition{Revision: seen.Revision})
				mu.Lock()
				switch {
				case err == nil:
					won++
					seen = r
				case errors.Is(err, store.ErrConflict):
					seen = r
				case errors.Is(err, store.ErrUnavailable):
					unknown++
				default:
					t.Errorf("got %v, want none, ErrConflict or ErrUnavailable", err)
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	r := b.stored(t)
	if string(r.Body) != strconv.FormatInt(r.Revision, 10) {
		t.Errorf("got %s at revision %d, want them equal: a write was made from another than it replaced", r.Body, r.Revision)
	}
	if r.Revision < won || r.Revision > won+unknown {
		t.Errorf("got revision %d, want %d to %d: won and unknown", r.Revision, won, won+unknown)
	}
	if won == 0 || unknown == 0 {
		t.Errorf("got %d won and %d unknown, want some of both", won, unknown)
	}
}

// TestCountedOnceInTrouble: counts that succeeded are all there, and none twice.
func TestCountedOnceInTrouble(t *testing.T) {
	b := newBench(t)
	const rounds = 60
	troubles := []awstest.Trouble{awstest.Lose, awstest.ApplyAndCut, awstest.Refuse(http.StatusBadRequest, "ThrottlingException"), nil}
	var counted, unknown int64
	for i := range rounds {
		b.Next("UpdateItem", troubles[i%len(troubles)])
		switch _, err := b.backend.Add(t.Context(), key, 0); {
		case err == nil:
			counted++
		case errors.Is(err, store.ErrUnavailable):
			unknown++
		default:
			t.Errorf("got %v, want none or ErrUnavailable", err)
		}
	}
	if counted != rounds/2 || unknown != rounds/2 {
		t.Errorf("got %d counted and %d unknown, want half each", counted, unknown)
	}
	if got, want := b.stored(t).Count, int64(rounds*3/4); got != want { // all but those lost
		t.Errorf("got a count of %d, want %d", got, want)
	}
}
