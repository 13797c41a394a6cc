package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptrace"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/request/gateway"
	"holdfast/internal/simulate"
	"holdfast/internal/status"
	"holdfast/internal/store"
	"holdfast/internal/test/upstreamtest"
)

// session makes a session id.
func session(n int) string { return fmt.Sprintf("3b1e6c1a-5d0f-4a55-9c0b-%012d", n) }

func TestConversationKeepsItsAccount(t *testing.T) {
	b := newBench(t, "marlow", "juniper")
	b.prefer("marlow", "juniper")
	first := b.served(ask{session: session(1)})
	if first.account() != "marlow" || first.pin() != "new" {
		t.Fatalf("got %s, pin %s, want marlow, new", first.account(), first.pin())
	}
	b.prefer("juniper", "marlow") // balancing never overrides a pin
	for range 3 {
		if r := b.served(ask{session: session(1)}); r.account() != "marlow" || r.pin() != "kept" {
			t.Errorf("got %s, pin %s, want marlow, kept", r.account(), r.pin())
		}
	}
	if r := b.served(ask{session: session(2)}); r.account() != "juniper" || r.pin() != "new" {
		t.Errorf("another session: got %s, pin %s, want juniper, new", r.account(), r.pin())
	}
	r := b.served(ask{session: session(2), header: http.Header{"X-Holdfast-Conversation": {"mine"}}})
	if r.pin() != "new" {
		t.Errorf("an explicit name: got pin %s, want new", r.pin())
	}
}

func TestRequestsThatMayNotPin(t *testing.T) {
	b := newBench(t, "marlow", "juniper")
	b.prefer("marlow", "juniper")
	count := ask{session: session(1), path: "/v1/messages/count_tokens"}
	probe := ask{session: session(1), body: `{"model":"claude-haiku-4-5","max_tokens":1,"messages":[{"role":"user","content":"quota"}]}`}
	for _, a := range []ask{count, probe} {
		if r := b.served(a); r.pin() != "none" {
			t.Errorf("%s: got pin %s, want none", a.path, r.pin())
		}
	}
	b.prefer("juniper", "marlow")
	if r := b.served(ask{session: session(1)}); r.account() != "juniper" || r.pin() != "new" {
		t.Fatalf("got %s, pin %s: asides made a pin", r.account(), r.pin())
	}
	b.prefer("marlow", "juniper")
	for _, a := range []ask{count, probe} {
		if r := b.served(a); r.account() != "juniper" || r.pin() != "none" {
			t.Errorf("%s: got %s, pin %s, want the pinned account and none", a.path, r.account(), r.pin())
		}
	}
}

func TestSubAgentStartsOnItsSessionsAccount(t *testing.T) {
	b := newBench(t, "marlow", "juniper")
	b.prefer("marlow", "juniper")
	b.served(ask{session: session(1)})
	b.fold("juniper", func(s account.State) account.State {
		return s.Observe(reading(b.clock.now(), 0, 0), 0, account.Rules{})
	})
	b.fold("marlow", func(s account.State) account.State {
		return s.Observe(reading(b.clock.now(), 0.79, 0.9), 0, account.Rules{})
	})
	if r := b.served(ask{session: session(1), agent: "a1"}); r.account() != "marlow" || r.pin() != "new" {
		t.Errorf("got %s, pin %s, want the session's account marlow, new", r.account(), r.pin())
	}
	b.fold("marlow", func(s account.State) account.State {
		return s.Observe(reading(b.clock.now(), 0.80, 0.9), 0, account.Rules{})
	})
	if r := b.served(ask{session: session(1), agent: "a2"}); r.account() != "juniper" || r.pin() != "new" {
		t.Errorf("at 80 %%: got %s, pin %s, want juniper, new", r.account(), r.pin())
	}
	if r := b.served(ask{session: session(1)}); r.account() != "marlow" || r.pin() != "kept" {
		t.Errorf("the parent: got %s, pin %s, want marlow, kept", r.account(), r.pin())
	}
}

// pin-to-dead-account-or-for-ever
func TestOneMoveAndNoWayBack(t *testing.T) {
	b := newBench(t, "marlow", "juniper")
	b.prefer("marlow", "juniper")
	b.served(ask{session: session(1)})
	b.account("marlow").Queue(upstreamtest.FiveHourSpent(b.clock.now().Add(30 * time.Minute)))
	if r := b.served(ask{session: session(1)}); r.account() != "juniper" || r.pin() != "moved" {
		t.Fatalf("got %s, pin %s, want juniper, moved", r.account(), r.pin())
	}
	b.clock.advance(31 * time.Minute) // marlow has recovered
	b.prefer("marlow", "juniper")
	for range 3 {
		if r := b.served(ask{session: session(1)}); r.account() != "juniper" || r.pin() != "kept" {
			t.Errorf("got %s, pin %s, want juniper, kept", r.account(), r.pin())
		}
	}
	if r := b.served(ask{session: session(2)}); r.account() != "marlow" {
		t.Errorf("a new conversation: got %s, want marlow", r.account())
	}
}

func TestPinLife(t *testing.T) {
	b := newBench(t, "marlow", "juniper")
	b.prefer("marlow", "juniper")
	b.served(ask{session: session(1)})
	for range 3 { // it slides with use
		b.clock.advance(50 * time.Minute)
		if r := b.served(ask{session: session(1)}); r.pin() != "kept" {
			t.Fatalf("got pin %s, want kept", r.pin())
		}
	}
	b.clock.advance(61*time.Minute + time.Second) // an hour, and the touch interval
	b.prefer("juniper", "marlow")
	if r := b.served(ask{session: session(1)}); r.account() != "juniper" || r.pin() != "new" {
		t.Errorf("after its life: got %s, pin %s, want juniper, new", r.account(), r.pin())
	}
}

func TestRemovedAccountVoidsItsPins(t *testing.T) {
	b := newBench(t, "marlow", "juniper")
	b.prefer("marlow", "juniper")
	b.served(ask{session: session(1)})
	b.change(func(c catalog.Catalog) catalog.Catalog { c.Accounts = c.Accounts[1:]; return c })
	b.clock.advance(2 * time.Second) // a command's change is seen by then
	if r := b.served(ask{session: session(1)}); r.account() != "juniper" || r.pin() != "moved" {
		t.Errorf("got %s, pin %s, want juniper, moved", r.account(), r.pin())
	}
}

func TestDrainingMovesNobody(t *testing.T) {
	b := newBench(t, "marlow", "juniper")
	b.prefer("marlow", "juniper")
	b.served(ask{session: session(1)})
	b.change(func(c catalog.Catalog) catalog.Catalog {
		c.Accounts = append([]account.Account(nil), c.Accounts...)
		c.Accounts[0].Draining = true
		return c
	})
	b.clock.advance(2 * time.Second)
	if r := b.served(ask{session: session(1)}); r.account() != "marlow" || r.pin() != "kept" {
		t.Errorf("got %s, pin %s, want marlow, kept", r.account(), r.pin())
	}
	if r := b.served(ask{session: session(2)}); r.account() != "juniper" {
		t.Errorf("a new one: got %s, want juniper", r.account())
	}
}

// pin-store-races: first requests of one conversation at the same moment, on two
// processes, with every account equally attractive.
func TestRacingFirstRequestsEndOnOneAccount(t *testing.T) {
	b := newBench(t, "marlow", "juniper")
	_, other := b.process(b.store, nil)
	for round := range 30 {
		replies := make([]reply, 6)
		var wg sync.WaitGroup
		for i := range replies {
			wg.Go(func() {
				a := ask{session: session(round), text: fmt.Sprint("turn ", i)}
				if i%2 == 1 {
					a.url = other
				}
				replies[i] = b.do(a)
			})
		}
		wg.Wait()
		news := 0
		for _, r := range replies {
			if r.status != http.StatusOK || r.account() != replies[0].account() {
				t.Fatalf("round %d: got %d from %s and %s", round, r.status, r.account(), replies[0].account())
			}
			if r.pin() == "new" {
				news++
			}
		}
		if news != 1 {
			t.Errorf("round %d: got %d new pins, want 1", round, news)
		}
	}
}

// sixty conversations started at once spread in proportion to headroom.
func TestBurstSpreads(t *testing.T) {
	b := newBench(t, "marlow", "juniper")
	for name, used := range map[string]float64{"marlow": 0.2, "juniper": 0.6} {
		b.fold(name, func(s account.State) account.State {
			return s.Observe(account.Reading{At: b.clock.now(), Source: account.FromAnswer, Windows: []account.WindowReading{
				{Name: account.FiveHour, Utilization: used, HasUtilization: true, ResetAt: b.clock.now().Add(time.Hour)},
			}}, 0, account.Rules{})
		})
	}
	gate := upstreamtest.NewGate()
	for _, name := range []string{"marlow", "juniper"} {
		b.account(name).Always(upstreamtest.Good(nil).With(upstreamtest.Held(gate)))
	}
	var wg sync.WaitGroup
	var marlow atomic.Int64
	for i := range 60 {
		wg.Go(func() {
			if b.do(ask{session: session(i)}).account() == "marlow" {
				marlow.Add(1)
			}
		})
	}
	if _, err := b.up.Await(t.Context(), 60); err != nil {
		t.Fatal(err)
	}
	gate.Release()
	wg.Wait()
	if n := marlow.Load(); n < 36 || n > 44 { // headroom 0.8 to 0.4: 40 to 20
		t.Errorf("got %d of 60 on the account with twice the headroom, want about 40", n)
	}
}

func TestTrialsAreCountedAcrossProcesses(t *testing.T) {
	b := newBench(t, "marlow")
	b.up.Account("fresh", secret("fresh"))
	a := account.Account{ID: "acc-fresh", Name: "fresh", Provider: account.Anthropic, Kind: account.Key, BaseURL: b.up.URL}
	b.change(func(c catalog.Catalog) catalog.Catalog {
		c.Accounts = append(append([]account.Account(nil), c.Accounts...), a)
		return c
	})
	b.login(a, secret("fresh"), 1)
	_, other := b.process(b.store, nil)
	trials := 0
	for i := range 8 {
		q := ask{session: session(i)}
		if i%2 == 1 {
			q.url = other
		}
		if b.served(q).account() == "fresh" {
			trials++
		}
	}
	if trials != 3 {
		t.Errorf("got %d conversations on an account that never gave a reading, want its 3 trials", trials)
	}
}

// failing is a store that fails when told to.
type failing struct {
	store.Backend
	down atomic.Bool
	puts atomic.Bool // only writes fail
	gets atomic.Int64
}

var errDown = fmt.Errorf("injected: %w", store.ErrUnavailable)

func (f *failing) Get(ctx context.Context, keys []store.Key) ([]store.Record, error) {
	f.gets.Add(1)
	if f.down.Load() {
		return nil, errDown
	}
	return f.Backend.Get(ctx, keys)
}

func (f *failing) Put(ctx context.Context, r store.Record, c store.Condition) (store.Record, error) {
	if f.down.Load() || f.puts.Load() {
		return store.Record{}, errDown
	}
	return f.Backend.Put(ctx, r, c)
}

func (f *failing) List(ctx context.Context, k store.Kind) iter.Seq2[store.Record, error] {
	if f.down.Load() {
		return func(yield func(store.Record, error) bool) { yield(store.Record{}, errDown) }
	}
	return f.Backend.List(ctx, k)
}

func TestStoreUnavailable(t *testing.T) {
	b := newBench(t, "marlow")
	f := &failing{Backend: b.backend()}
	_, url := b.process(store.New(f), nil)
	b.served(ask{url: url, session: session(1)})
	before := len(b.up.Requests())
	for _, fail := range []*atomic.Bool{&f.down, &f.puts} {
		fail.Store(true)
		r := b.do(ask{url: url, session: session(2)})
		if r.status != http.StatusServiceUnavailable || r.errorKind() != "store_unavailable" || r.header.Get("Retry-After") != "2" || r.errorType() == "" {
			t.Errorf("got %d %s, Retry-After %q, %s", r.status, r.errorKind(), r.header.Get("Retry-After"), r.body)
		}
		fail.Store(false)
	}
	if n := len(b.up.Requests()) - before; n != 0 {
		t.Errorf("got %d upstream requests without a store, want none", n)
	}
	b.served(ask{url: url, session: session(2)})
}

// One round trip to the store before the upstream request, and no write, for a pinned
// conversation about which nothing changed.
func TestStoreRoundTripsOfAPinnedRequest(t *testing.T) {
	b := newBench(t, "marlow", "juniper")
	f := &failing{Backend: b.backend()}
	_, url := b.process(store.New(f), nil)
	b.served(ask{url: url, session: session(1)})
	b.served(ask{url: url, session: session(1)})
	f.puts.Store(true) // from here on a write would fail and be logged
	before := f.gets.Load()
	b.served(ask{url: url, session: session(1)})
	if n := f.gets.Load() - before; n != 1 {
		t.Errorf("got %d reads, want 1", n)
	}
	if log := b.log.String(); containsAny(log, "write beside the answer") {
		t.Errorf("got a write:\n%s", log)
	}
}

func TestRestartRemembersEverything(t *testing.T) {
	b := newBench(t, "marlow", "juniper")
	b.prefer("marlow", "juniper")
	b.served(ask{session: session(1)})
	b.account("marlow").Queue(upstreamtest.FiveHourSpent(b.clock.now().Add(3 * time.Hour)))
	if r := b.served(ask{session: session(2)}); r.account() != "juniper" {
		t.Fatalf("got %s, want juniper", r.account())
	}
	_, other := b.process(b.store, nil)
	if r := b.served(ask{session: session(1), url: other}); r.account() != "juniper" || r.pin() != "moved" {
		t.Errorf("got %s, pin %s: the rejection was forgotten", r.account(), r.pin())
	}
	if r := b.served(ask{session: session(2), url: other}); r.pin() != "kept" {
		t.Errorf("got pin %s, want kept", r.pin())
	}
	if n := len(b.account("marlow").Requests()); n != 2 {
		t.Errorf("got %d requests at the spent account, want 2", n)
	}
}

func TestChangesAreSeenWithinTwoSeconds(t *testing.T) {
	b := newBench(t, "marlow")
	b.served(ask{})
	second := b.newKey(catalog.ClientKey{Name: "second"})
	b.clock.advance(2 * time.Second)
	b.served(ask{key: second})
	b.change(func(c catalog.Catalog) catalog.Catalog { c.Keys = c.Keys[:1]; return c })
	b.clock.advance(2 * time.Second)
	if r := b.do(ask{key: second}); r.status != http.StatusUnauthorized {
		t.Errorf("a revoked key: got %d, want 401", r.status)
	}
	b.served(ask{})
}

func TestOptions(t *testing.T) {
	if _, err := gateway.New(gateway.Options{}); err == nil {
		t.Error("got a gateway without a store")
	}
}

// A request that was begun by an old catalog goes by the one that another request has read
// while its body came.
func TestChangesAreSeenWhileABodyComes(t *testing.T) {
	b := newBench(t, "marlow", "juniper")
	revoked := b.newKey(catalog.ClientKey{Name: "revoked"})
	b.served(ask{session: session(1)})
	b.clock.advance(time.Hour)
	b.change(func(c catalog.Catalog) catalog.Catalog {
		c.Keys = slices.DeleteFunc(slices.Clone(c.Keys), func(k catalog.ClientKey) bool { return k.Name == "revoked" })
		return c
	})
	begun := make(chan struct{})
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got100Continue: func() { close(begun) }})
	req := b.request(ask{session: session(2), key: revoked, ctx: ctx})
	req.Header.Set("Expect", "100-continue")
	text, writer := io.Pipe()
	body := req.Body
	req.Body = text
	status := make(chan int, 1)
	go func() {
		transport := &http.Transport{ExpectContinueTimeout: time.Minute, DisableKeepAlives: true}
		resp, err := transport.RoundTrip(req)
		if err != nil {
			t.Errorf("send: %v", err)
			status <- 0
			return
		}
		status <- resp.StatusCode
		_ = resp.Body.Close()
	}()
	<-begun // it is authenticated, and its body wanted
	b.served(ask{session: session(3)})
	_, err := io.Copy(writer, body)
	writer.CloseWithError(err)
	if got := <-status; got != http.StatusUnauthorized {
		t.Errorf("got %d, want 401", got)
	}
}

// A turn after a pause touches the pin beside the answer. When that answer is a rejection,
// the move is made from the pin as touched: our own touch is nobody else's.
func TestMoveAfterATouch(t *testing.T) {
	for range 20 { // either of the two writes may come first
		b := newBench(t, "marlow", "juniper")
		b.prefer("marlow", "juniper")
		b.served(ask{session: session(1)})
		b.clock.advance(2 * time.Minute)
		b.account("marlow").Queue(upstreamtest.FiveHourSpent(b.clock.now().Add(3 * time.Hour)))
		if r := b.do(ask{session: session(1)}); r.status != http.StatusOK || r.account() != "juniper" || r.pin() != "moved" {
			t.Fatalf("got %d by %s, pin %s, want it moved to juniper", r.status, r.account(), r.pin())
		}
	}
}

// TestTotalsCountPinsAlone is field case new-without-a-pin: a request that failed and says
// that it has no pin is in no count of pins that were made, whatever it failed by.
func TestTotalsCountPinsAlone(t *testing.T) {
	b := newBench(t, "marlow")
	lab := b.addOf(account.OpenAI, "lab", account.Key)
	admin := b.newKey(catalog.ClientKey{Name: "owner", Admin: true})
	b.served(ask{session: session(1)})
	mistake := upstreamtest.Failed(http.StatusBadRequest, simulate.Failure{Type: "invalid_request_error", Message: "max_tokens: too large"})
	down := upstreamtest.Failed(529, simulate.Failure{Type: "overloaded_error", Message: "Overloaded"})
	for n, script := range []upstreamtest.Script{mistake, down, upstreamtest.FiveHourSpent(b.clock.now().Add(time.Hour))} {
		b.account("marlow").Queue(script)
		if r := b.do(ask{session: session(10 + n)}); r.status == http.StatusOK || r.pin() != "none" {
			t.Errorf("%d: got %d, pin %s, want a failure and none", n, r.status, r.pin())
		}
	}
	lab.Queue(mistake)
	if r := b.do(ask{session: session(20), path: "/v1/responses", body: `{"model":"gpt-5.5","input":"hello"}`, header: http.Header{"Session-Id": {session(20)}}}); r.status == http.StatusOK || r.pin() != "none" {
		t.Errorf("openai: got %d, pin %s", r.status, r.pin())
	}
	var report status.Report
	if err := json.Unmarshal([]byte(b.served(ask{method: "GET", path: "/_holdfast/status.json", key: admin}).body), &report); err != nil {
		t.Fatal(err)
	}
	want := status.Counts{New: 1}
	if report.Totals.LastHour != want || report.Totals.LastDay != want {
		t.Errorf("got %+v, want one new pin", report.Totals)
	}
	// The same conversation begins anew, and counts from then on.
	b.fold("marlow", func(s account.State) account.State { return s.Clear(b.clock.now()) })
	if r := b.served(ask{session: session(10)}); r.pin() != "new" {
		t.Errorf("got pin %s, want new", r.pin())
	}
	if err := json.Unmarshal([]byte(b.served(ask{method: "GET", path: "/_holdfast/status.json", key: admin}).body), &report); err != nil {
		t.Fatal(err)
	}
	if report.Totals.LastHour.New != 2 {
		t.Errorf("got %+v, want two new pins", report.Totals.LastHour)
	}
}
