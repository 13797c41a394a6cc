package dynamostore_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/internal/core/account"
	"holdfast/internal/core/pin"
	"holdfast/internal/store"
	"holdfast/internal/store/dynamostore"
	"holdfast/internal/test/awstest"
)

// TestRoundTrips: every call is one request, whether it wins or loses.
func TestRoundTrips(t *testing.T) {
	b := newBench(t)
	b.put(t, "first", b.now.Add(-time.Hour), 0)
	b.Calls()
	ctx := t.Context()
	conflict := func(err error) error {
		if !errors.Is(err, store.ErrConflict) {
			return errors.Join(errors.New("got no conflict"), err)
		}
		return nil
	}
	keys := func(n int) []store.Key {
		all := make([]store.Key, n)
		for i := range all {
			all[i] = store.Key{Kind: key.Kind, ID: fmt.Sprint(i)}
		}
		return all
	}
	for _, c := range []struct {
		name, operation string
		want            int
		do              func() error
	}{
		{"Get/7", "BatchGetItem", 1, func() error { _, err := b.backend.Get(ctx, keys(7)); return err }},
		{"Get/100", "BatchGetItem", 1, func() error { _, err := b.backend.Get(ctx, keys(100)); return err }},
		{"Get/101", "BatchGetItem", 2, func() error { _, err := b.backend.Get(ctx, keys(101)); return err }},
		{"Put/Lost", "UpdateItem", 1, func() error {
			_, err := b.backend.Put(ctx, store.Record{Key: key}, store.Condition{})
			return conflict(err)
		}},
		{"Put/TakenOver", "UpdateItem", 1, func() error {
			_, err := b.backend.Put(ctx, store.Record{Key: key}, store.Condition{ExpiredBy: b.now})
			return err
		}},
		{"Put/Won", "UpdateItem", 1, func() error {
			_, err := b.backend.Put(ctx, store.Record{Key: key}, store.Condition{Revision: 2})
			return err
		}},
		{"Add/Won", "UpdateItem", 1, func() error { _, err := b.backend.Add(ctx, key, 1); return err }},
		{"Add/Lost", "UpdateItem", 1, func() error { _, err := b.backend.Add(ctx, key, 1); return conflict(err) }},
		{"Delete/Lost", "DeleteItem", 1, func() error { return conflict(b.backend.Delete(ctx, key, 1)) }},
		{"Delete/Won", "DeleteItem", 1, func() error { return b.backend.Delete(ctx, key, 3) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := c.do(); err != nil {
				t.Errorf("got %v", err)
			}
			b.checkCalls(t, c.operation, c.want)
		})
	}
}

// TestPinnedRequest: what a request of a pinned conversation has to know costs one read,
// and a pin that is claimed, or was by others, one write.
func TestPinnedRequest(t *testing.T) {
	b := newBench(t)
	s := store.New(b.backend)
	a := account.Account{ID: "a", Name: "a", Provider: account.Anthropic, Kind: account.Subscription}
	for _, won := range []bool{true, false} {
		if _, ours, err := s.ClaimPin(t.Context(), "conversation", pin.New(a, false, b.now, time.Hour), b.now); err != nil || ours != won {
			t.Fatalf("got won %v and error %v, want %v and none", ours, err, won)
		}
		b.checkCalls(t, "UpdateItem", 1)
	}
	v, err := s.Read(t.Context(), store.Query{Catalog: true, Pins: []string{"conversation"}, States: []account.ID{"a", "b", "c", "d", "e"}})
	if err != nil || v.Pins["conversation"].Account != "a" {
		t.Fatalf("got pin %+v and error %v, want account a", v.Pins["conversation"], err)
	}
	b.checkCalls(t, "BatchGetItem", 1)
}

// TestUnprocessedKeys: DynamoDB may answer for some keys only. All others are asked for
// again; those that never come make the store unavailable, not the records absent.
func TestUnprocessedKeys(t *testing.T) {
	b := newBench(t)
	var keys []store.Key
	for i := range 7 {
		k := store.Key{Kind: key.Kind, ID: fmt.Sprint(i)}
		if keys = append(keys, k); i != 5 { // one does not exist
			if _, err := b.others.Put(t.Context(), store.Record{Key: k, Body: []byte(k.ID)}, store.Condition{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		name     string
		troubles []awstest.Trouble
		calls    int
	}{
		{"Some", []awstest.Trouble{awstest.LeaveUnprocessed(3)}, 2},
		{"OneAtATime", []awstest.Trouble{
			awstest.LeaveUnprocessed(1), awstest.LeaveUnprocessed(1), awstest.LeaveUnprocessed(1),
			awstest.LeaveUnprocessed(1), awstest.LeaveUnprocessed(1), awstest.LeaveUnprocessed(1),
		}, 7},
		{"AllAtFirst", []awstest.Trouble{awstest.LeaveUnprocessed(0), awstest.LeaveUnprocessed(0)}, 3},
		{"ThenThrottled", []awstest.Trouble{awstest.LeaveUnprocessed(6), awstest.Refuse(http.StatusBadRequest, "ThrottlingException")}, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			b.Next("BatchGetItem", c.troubles...)
			found, err := b.backend.Get(t.Context(), keys)
			if err != nil {
				t.Fatalf("got %v, want no error", err)
			}
			seen := map[string]bool{}
			for _, r := range found {
				if string(r.Body) != r.ID {
					t.Errorf("got %q for %s, want its own body", r.Body, r.ID)
				}
				seen[r.ID] = true
			}
			if len(found) != 6 || len(seen) != 6 {
				t.Errorf("got %d records, %d different, want the 6 there are", len(found), len(seen))
			}
			b.checkCalls(t, "BatchGetItem", c.calls)
		})
	}
	t.Run("NeverProcessed", func(t *testing.T) {
		b.Always("BatchGetItem", awstest.LeaveUnprocessed(0))
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		found, err := b.backend.Get(ctx, keys)
		if !errors.Is(err, store.ErrUnavailable) || found != nil {
			t.Errorf("got %d records and error %v, want none and ErrUnavailable", len(found), err)
		}
		if got := b.Calls()["BatchGetItem"]; got < 3 {
			t.Errorf("got %d calls, want more: until the context ends", got)
		}
	})
}

// TestNobodyThere: a store that cannot be reached, or that never says a word.
func TestNobodyThere(t *testing.T) {
	for name, endpoint := range map[string]string{"Refused": awstest.Refused(t), "Deaf": awstest.Deaf(t)} {
		for _, c := range calls {
			t.Run(name+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				if err := c.do(t.Context(), dynamostore.New(dynamostore.Client(awstest.Config(endpoint)), "table")); !errors.Is(err, store.ErrUnavailable) {
					t.Errorf("got %v, want ErrUnavailable", err)
				}
			})
		}
	}
}

// piped gives a backend another end for its connections, without a network, so that it
// can run in a bubble. The returned function closes them.
func piped(serve func(net.Conn)) (*dynamostore.Backend, func()) {
	var ends []net.Conn
	options := dynamostore.Client(awstest.Config("http://127.0.0.1:1")).Options()
	options.HTTPClient = dynamostore.WithTransport(options.HTTPClient, func(transport *http.Transport) {
		transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			ends = append(ends, ours, theirs)
			go serve(theirs)
			return ours, nil
		}
	})
	return dynamostore.New(dynamodb.New(options), "table"), func() {
		for _, end := range ends {
			end.Close()
		}
	}
}

// respond answers every request with the same bytes.
func respond(response string) func(net.Conn) {
	return func(c net.Conn) {
		for reader := bufio.NewReader(c); ; {
			request, err := http.ReadRequest(reader)
			if err != nil {
				return
			}
			if _, err := io.Copy(io.Discard, request.Body); err != nil {
				return
			}
			if _, err := io.WriteString(c, response); err != nil {
				return
			}
		}
	}
}

// TestGivesUpInTime: somebody waits for every call, so none may take longer than the
// store allows, whatever the network does. The clock is the bubble's.
func TestGivesUpInTime(t *testing.T) {
	const short = 100 * time.Millisecond
	for _, network := range []struct {
		name  string
		serve func(net.Conn) // what the other end does with a connection
		// within is when a call gives up without a deadline; with one of short at the
		// latest then.
		within time.Duration
	}{
		{"NeverReads", func(net.Conn) {}, store.CallTimeout},
		{"NeverAnswers", func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }, store.CallTimeout},
		{"StopsInTheAnswer", respond("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"), store.CallTimeout},
		// Whoever waits is better told at once than after the second that the SDK rests.
		{"Throttles", respond("HTTP/1.1 400 Bad Request\r\nContent-Length: 59\r\n\r\n" +
			`{"__type":"com.amazonaws.dynamodb#ThrottlingException"}` + "    "), 20 * time.Millisecond},
	} {
		for _, c := range calls {
			for _, limit := range []time.Duration{0, short} {
				t.Run(fmt.Sprintf("%s/%s/%v", network.name, c.name, limit), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						b, closeAll := piped(network.serve)
						defer closeAll()
						ctx, within := t.Context(), network.within
						if limit > 0 {
							var cancel context.CancelFunc
							ctx, cancel = context.WithTimeout(ctx, limit)
							defer cancel()
							within = min(within, limit)
						}
						start := time.Now()
						err := c.do(ctx, b)
						if took := time.Since(start); took > within || !errors.Is(err, store.ErrUnavailable) {
							t.Errorf("got %v after %v, want ErrUnavailable within %v", err, took, within)
						}
					})
				})
			}
		}
	}
}

// TestItem: the attributes that package comment and deployment name.
func TestItem(t *testing.T) {
	endpoint := awstest.StartMiniStack(t, false)
	table, client := newTable(t, endpoint), patient(endpoint)
	b := dynamostore.New(client, table)
	at := time.Date(2027, 3, 4, 10, 0, 0, 0, time.UTC) // 1804154400
	for _, c := range []struct {
		name   string
		record store.Record
		want   map[string]string
	}{
		{"Whole", store.Record{Body: []byte("x"), ExpiresAt: at.Add(1500 * time.Microsecond), DeleteAfter: at},
			map[string]string{"revision": "1", "body": "x", "expires_ms": "1804154400001", "ttl": "1804154400"}},
		{"NotDeletedEarly", store.Record{Body: []byte("x"), DeleteAfter: at.Add(time.Nanosecond)},
			map[string]string{"revision": "2", "body": "x", "ttl": "1804154401"}},
		{"NeverExpires", store.Record{}, map[string]string{"revision": "3", "body": ""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.record.Key = store.Key{Kind: "pin", ID: "a#b"}
			previous := int64(c.want["revision"][0] - '1')
			if _, err := b.Put(t.Context(), c.record, store.Condition{Revision: previous}); err != nil {
				t.Fatal(err)
			}
			out, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{
				TableName: &table, Key: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "pin#a#b"}},
			})
			if err != nil {
				t.Fatal(err)
			}
			for name, v := range out.Item {
				got, known := "", name == "pk" || name == "write"
				switch v := v.(type) {
				case *types.AttributeValueMemberN:
					got = v.Value
				case *types.AttributeValueMemberB:
					got = string(v.Value)
				}
				if want, ok := c.want[name]; !known && (!ok || got != want) {
					t.Errorf("%s: got %q, want %q (there: %v)", name, got, want, ok)
				}
			}
			if len(out.Item) != len(c.want)+2 {
				t.Errorf("got %d attributes, want %d", len(out.Item), len(c.want)+2)
			}
		})
	}
}

// TestErrorsSayWhatToDo: what the owner has to put right.
func TestErrorsSayWhatToDo(t *testing.T) {
	endpoint := awstest.StartMiniStack(t, false)
	front := awstest.NewFront(t, endpoint)
	table := newTable(t, endpoint)
	for _, c := range []struct {
		name, table string
		trouble     awstest.Trouble
		want        string
	}{
		{"NoTable", "not-made", nil, "there is no DynamoDB table not-made"},
		{"AccessDenied", table, awstest.Refuse(http.StatusBadRequest, "AccessDeniedException"), "may not do that with the DynamoDB table " + table},
		{"Expired", table, awstest.Refuse(http.StatusBadRequest, "ExpiredTokenException"), "log in again"},
	} {
		t.Run(c.name, func(t *testing.T) {
			front.Calls()
			front.Next("BatchGetItem", c.trouble)
			_, err := open(front.URL, c.table).Get(t.Context(), []store.Key{key})
			if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want ErrUnavailable with %q", err, c.want)
			}
			if got := front.Calls()["BatchGetItem"]; got != 1 {
				t.Errorf("got %d calls, want 1: asking again does not help", got)
			}
		})
	}
}
