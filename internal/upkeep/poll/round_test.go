package poll_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/credential"
	"holdfast/internal/provider"
	"holdfast/internal/provider/openai"
	"holdfast/internal/store/vault"
	"holdfast/internal/upkeep/poll"
)

// claude is what Anthropic's usage endpoint answers.
func claude(fiveHour, weekly float64) http.HandlerFunc {
	return says(http.StatusOK, fmt.Sprintf(`{"five_hour":{"utilization":%v,"resets_at":"2027-03-04T15:00:00Z"},`+
		`"seven_day":{"utilization":%v,"resets_at":"2027-03-10T10:00:00Z"},"seven_day_opus":null}`, fiveHour, weekly))
}

// codex is what ChatGPT's answers of a plan with both windows.
func codex(fiveHour, weekly float64, reached bool) http.HandlerFunc {
	return says(http.StatusOK, fmt.Sprintf(`{"plan_type":"pro","rate_limit":{"allowed":%v,"limit_reached":%v,`+
		`"primary_window":{"used_percent":%v,"limit_window_seconds":18000,"reset_after_seconds":18000,"reset_at":1804172400},`+
		`"secondary_window":{"used_percent":%v,"limit_window_seconds":604800,"reset_after_seconds":518400,"reset_at":1804672800}},`+
		`"credits":{"has_credits":false,"unlimited":false,"balance":"0"}}`, !reached, reached, fiveHour, weekly))
}

// TestOneRoundInTheFleet: of twenty instances at once, one makes the round.
func TestOneRoundInTheFleet(t *testing.T) {
	b := newBench(t)
	e := b.login(account.Anthropic, "marlow")
	e.answer(claude(30, 41))
	const instances = 20
	made, skipped := 0, map[string]int{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for range instances {
		p := b.poller()
		all.Go(func() {
			report, err := p.Round(t.Context())
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Errorf("got %v, want no error", err)
			}
			if report.Skipped == "" {
				made++
			} else {
				skipped[report.Skipped]++
			}
		})
	}
	all.Wait()
	if made != 1 || len(e.calls()) != 1 {
		t.Errorf("got %d rounds (%v), want 1 with one call", made, skipped)
	}
	for why := range skipped {
		if why != "another round is running" && why != "a round began 0s ago" {
			t.Errorf("got %q, want it to say that there is another round", why)
		}
	}
	if got := b.state("marlow").Windows[account.Weekly].Utilization; got != 0.41 {
		t.Errorf("got weekly %v, want 0.41", got)
	}
}

func TestRoundsApart(t *testing.T) {
	b := newBench(t)
	p := b.poller()
	for _, c := range []struct {
		after time.Duration
		made  bool
	}{{0, true}, {30*time.Second - 1, false}, {1, true}, {time.Minute, true}} {
		b.advance(c.after)
		report, err := p.Round(t.Context())
		if err != nil || (report.Skipped == "") != c.made {
			t.Errorf("%v later: got error %v, skipped %q, want made %v", c.after, err, report.Skipped, c.made)
		}
	}
}

// TestPollThrottled is field case usage-poll-throttled-or-harmful.
func TestPollThrottled(t *testing.T) {
	b := newBench(t)
	e := b.login(account.Anthropic, "marlow")
	p := b.poller()
	known := account.Reading{At: t0.Add(-time.Hour), Source: account.FromAnswer, Windows: []account.WindowReading{
		{Name: account.FiveHour, Utilization: 0.30, HasUtilization: true, ResetAt: t0.Add(5 * time.Hour)},
		{Name: account.Weekly, Utilization: 0.41, HasUtilization: true, ResetAt: t0.Add(6 * 24 * time.Hour)},
	}}
	b.learn("marlow", func(s account.State) account.State { return s.Observe(known, 0, account.Rules{}) })
	before := b.state("marlow")

	answered := 0
	e.answer(func(w http.ResponseWriter, r *http.Request) {
		answered++
		switch {
		case answered <= 6:
			w.Header().Set("Retry-After", "0")
			says(http.StatusTooManyRequests, `{"error":{"type":"rate_limit_error","message":"Rate limited. Please try again later."}}`)(w, r)
		case answered == 7: // without the weekly reset
			says(http.StatusOK, `{"five_hour":{"utilization":5.0,"resets_at":"2027-03-04T16:00:00Z"},"seven_day":{"utilization":42.0}}`)(w, r)
		case answered == 8:
			says(http.StatusUnauthorized, `{"type":"error","error":{"type":"authentication_error","message":"OAuth token has expired."}}`)(w, r)
		default:
			claude(6, 43)(w, r)
		}
	})
	var asked []time.Duration
	var results []poll.Result
	for range 2*60 + 15 {
		f := b.round(p, "marlow")
		if calls := e.calls(); len(calls) > 0 {
			asked = append(asked, calls...)
			results = append(results, f.Result)
		}
		if answered < 7 && b.state("marlow").Revision != before.Revision {
			t.Fatalf("call %d changed the state: a refused look teaches nothing", answered)
		}
		b.advance(time.Minute)
	}
	m := time.Minute
	// Doubling from the interval, 429 after 429; then the interval; the refused token is
	// renewed and asked with again within the same turn; looked at, it is not silent for 10
	// minutes.
	want := []time.Duration{0, 5 * m, 15 * m, 35 * m, 65 * m, 95 * m, 125 * m}
	if len(asked) < len(want) || !slices.Equal(asked[:len(want)], want) {
		t.Errorf("got calls at %v, want %v", asked, want)
	}
	if rest := asked[len(want):]; len(rest) != 0 {
		t.Errorf("got calls at %v, want none so soon: a look says as much as an answer", rest)
	}
	s := b.state("marlow")
	w := s.Windows[account.Weekly]
	if w.Utilization != 0.42 || !w.ResetAt.Equal(t0.Add(6*24*time.Hour)) {
		t.Errorf("got weekly %v until %v, want 0.42 until the reset that was known", w.Utilization, w.ResetAt)
	}
	if w := s.Windows[account.FiveHour]; w.Utilization != 0.05 || !w.ObservedAt.Equal(t0.Add(125*m)) {
		t.Errorf("got five-hour %v at %v, want 0.05 at the look", w.Utilization, w.ObservedAt)
	}

	f := b.round(p, "marlow") // at 135 minutes, ten after the last look
	if e := e.calls(); f.Result != poll.WasRead || !f.Renewed || !slices.Equal(e, []time.Duration{135 * m, 135 * m}) {
		t.Errorf("token refused: got %s (%s), renewed %v, calls %v, want a reading after one renewal", f.Result, f.Trouble, f.Renewed, e)
	}
	if got := b.renewer.renewals(); len(got) != 1 {
		t.Errorf("got renewals %v, want one", got)
	}
	if s := b.state("marlow"); s.Parked != nil || s.Windows[account.Weekly].Utilization != 0.43 {
		t.Errorf("got parked %v and weekly %v, want 0.43 and not parked", s.Parked, s.Windows[account.Weekly].Utilization)
	}
	if !slices.Equal(results, []poll.Result{"failed", "failed", "failed", "failed", "failed", "failed", "read"}) {
		t.Errorf("got results %v, want six failures and a reading", results)
	}
}

// TestFailures: whatever else comes than a reading changes the clock alone.
func TestFailures(t *testing.T) {
	cut := func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }
	for name, answer := range map[string]http.HandlerFunc{
		"a failing provider": says(http.StatusInternalServerError, `{}`),
		"a web page":         says(http.StatusOK, `<!doctype html><title>Just a moment</title>`),
		"not allowed":        says(http.StatusForbidden, `{"error":{"type":"permission_error","message":"no"}}`),
		"not found":          says(http.StatusNotFound, ``),
		"half an answer":     says(http.StatusOK, `{"five_hour":{"utilization":5.0,`),
		"no window":          says(http.StatusOK, `{"five_hour":null}`),
		"a cut connection":   cut,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			e := b.login(account.Anthropic, "marlow")
			e.answer(answer)
			b.learn("marlow", func(s account.State) account.State { return spent(s, "", t0.Add(-time.Minute)) })
			before := b.state("marlow")
			f := b.round(b.poller(), "marlow")
			if f.Result != poll.HasFailed || f.Trouble == "" || f.Clock.Failures != 1 || !f.Clock.NextAt.Equal(t0.Add(5*time.Minute)) {
				t.Errorf("got %s (%q), clock %+v, want a failure, and the next look in 5 minutes", f.Result, f.Trouble, f.Clock)
			}
			if after := b.state("marlow"); after.Revision != before.Revision {
				t.Errorf("got state %+v, want it as it was", after)
			}
			if got := b.renewer.renewals(); len(got) != 0 {
				t.Errorf("got renewals %v, want none", got)
			}
			if strings.Contains(f.Trouble, "Just a moment") || strings.Contains(f.Trouble, "EXAMPLE") {
				t.Errorf("got %q, want nothing of the answer or the login", f.Trouble)
			}
		})
	}
}

// stubborn is a Looker whose calls to one account end badly.
type stubborn struct{ provider.Looker }

func (s stubborn) Looked(n int, r provider.Reply) (account.Reading, error) {
	if r.Header.Get("X-Panic") != "" {
		panic("a fault of ours")
	}
	return s.Looker.Looked(n, r)
}

// TestOneStopsNoOther: an account that makes the program panic, one whose host is silent,
// one that cannot be opened and one that is nowhere keep nobody else from being read.
func TestOneStopsNoOther(t *testing.T) {
	b := newBench(t)
	b.looker[account.OpenAI] = stubborn{openai.Provider{}}
	b.login(account.OpenAI, "panics").answer(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Panic", "yes")
		codex(1, 1, false)(w, r)
	})
	read := make(chan struct{})
	b.login(account.OpenAI, "silent").answer(func(w http.ResponseWriter, r *http.Request) {
		select { // until everybody else was read: in turn, nobody would be
		case <-read:
			panic(http.ErrAbortHandler)
		case <-r.Context().Done():
		}
	})
	b.login(account.OpenAI, "nowhere").Close()
	sealed := b.login(account.OpenAI, "sealed")
	if _, _, err := b.store.PutCredential(t.Context(), "acc-sealed", []byte(`{"generation":1,"sealed":"AAAA"}`), 1); err != nil {
		t.Fatal(err)
	}
	b.login(account.OpenAI, "good").answer(func(w http.ResponseWriter, r *http.Request) {
		codex(20, 60, false)(w, r)
		close(read)
	})
	report, err := b.poller().Round(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]poll.Result{
		"panics": poll.HasFailed, "silent": poll.HasFailed, "nowhere": poll.HasFailed, "sealed": poll.Unwatched, "good": poll.WasRead,
	} {
		if f := b.find(report, name); f.Result != want || (want != poll.WasRead) != (f.Trouble != "") {
			t.Errorf("%s: got %s (%q), want %s, and words where it failed", name, f.Result, f.Trouble, want)
		}
	}
	if len(sealed.calls()) != 0 || b.state("good").Windows[account.Weekly].Utilization != 0.6 {
		t.Error("want the good account read, and no call without a credential")
	}
	if !strings.Contains(b.log.String(), "a fault of ours") {
		t.Error("want the panic in the log")
	}
}

// silence is a Caller whose calls to some hosts get no answer.
type silence struct{ at map[string]bool }

func (s silence) Do(ctx context.Context, _ provider.Call, baseURL string) (provider.Reply, error) {
	if s.at[baseURL] {
		<-ctx.Done()
		return provider.Reply{}, errors.New("no answer")
	}
	return provider.Reply{Status: http.StatusOK, At: t0, Body: []byte(`{"config":{"creditUsagePercent":7,"currentPeriod":{"type":"WEEKLY","end":"2027-03-10T10:00:00Z"}}}`)}, nil
}

// TestSilentHosts: more silent accounts than have their turn at once cost the others some of
// the round's time, and no more.
func TestSilentHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		caller := silence{map[string]bool{}}
		for i := range 9 {
			a := account.Account{ID: account.ID(fmt.Sprint("acc-", i)), Name: fmt.Sprint("silent-", i), Provider: account.XAI, Kind: account.Subscription, BaseURL: fmt.Sprint("https://silent-", i, ".example")}
			if i == 8 {
				a.Name, a.BaseURL = "good", "https://good.example"
			}
			caller.at[a.BaseURL] = i < 8
			b.add(a, credential.Credential{Generation: 1, Access: credential.NewSecret("EXAMPLE")})
		}
		began := time.Now()
		report, err := b.poller(func(o *poll.Options) { o.Caller = caller }).Round(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range report.Accounts {
			want := poll.HasFailed
			if f.Account.Name == "good" {
				want = poll.WasRead
			}
			if f.Result != want {
				t.Errorf("%s: got %s (%s), want %s", f.Account.Name, f.Result, f.Trouble, want)
			}
		}
		if took := time.Since(began); took > time.Minute { // of the bubble's clock
			t.Errorf("the round took %v, want less than until the next", took)
		}
	})
}

// TestFrozenRound: a round that wakes up long after its lease takes no clock back to what it
// knew.
func TestFrozenRound(t *testing.T) {
	b := newBench(t)
	e := b.login(account.OpenAI, "tansy")
	asked, thaw := make(chan struct{}), make(chan struct{})
	e.answer(func(w http.ResponseWriter, r *http.Request) {
		close(asked)
		<-thaw
		codex(10, 10, false)(w, r)
	})
	var first sync.WaitGroup
	first.Go(func() { _, _ = b.poller().Round(t.Context()) })
	<-asked
	b.advance(20 * time.Minute)
	e.answer(says(http.StatusTooManyRequests, `{}`))
	later := b.round(b.poller(), "tansy")
	close(thaw)
	first.Wait()
	p, err := b.store.Poll(t.Context())
	if c := p.Clocks["acc-tansy"]; err != nil || later.Result != poll.HasFailed || c.Failures != 1 || !c.NextAt.Equal(t0.Add(25*time.Minute)) || !p.RoundAt.Equal(t0.Add(20*time.Minute)) {
		t.Errorf("got %+v at %v (%v), want the later round's", c, p.RoundAt, err)
	}
}

// TestFaultOutsideOfTurns ends the round, not the process, and leaves the next one its lease.
func TestFaultOutsideOfTurns(t *testing.T) {
	b := newBench(t)
	b.login(account.OpenAI, "good").answer(codex(20, 60, false))
	broken := b.poller(func(o *poll.Options) {
		o.OpenBox = func(context.Context) (vault.Box, error) { panic("a fault of ours") }
	})
	if _, err := broken.Round(t.Context()); err == nil || strings.Contains(err.Error(), "a fault of ours") {
		t.Errorf("got %v, want an error without internals", err)
	}
	if f := b.round(b.poller(), "good"); f.Result != poll.WasRead {
		t.Errorf("the next round: got %s, want a reading", f.Result)
	}
}

// TestRoundOfAll asks whom a round leaves alone, except those who are backed off from.
func TestRoundOfAll(t *testing.T) {
	b := newBench(t)
	good, bad := b.login(account.Anthropic, "good"), b.login(account.Anthropic, "bad")
	good.answer(claude(1, 1))
	bad.answer(says(http.StatusTooManyRequests, `{}`))
	if _, err := b.poller().Round(t.Context()); err != nil {
		t.Fatal(err)
	}
	good.calls()
	bad.calls()
	b.advance(time.Second)
	report, err := b.poller().RoundOfAll(t.Context(), func() { t.Error("nobody is to be waited for") })
	if err != nil {
		t.Fatal(err)
	}
	if f := b.find(report, "good"); f.Result != poll.WasRead || len(good.calls()) != 1 {
		t.Errorf("got %s, want a reading", f.Result)
	}
	if f := b.find(report, "bad"); f.Result != poll.BackingOff || f.Trouble == "" || len(bad.calls()) != 0 {
		t.Errorf("got %s (%q), want it backed off from, and why", f.Result, f.Trouble)
	}
}

// TestWaitsForARound that is running.
func TestWaitsForARound(t *testing.T) {
	b := newBench(t)
	e := b.login(account.Anthropic, "marlow")
	asked, release := make(chan struct{}), make(chan struct{})
	e.answer(func(w http.ResponseWriter, r *http.Request) {
		close(asked)
		<-release
		claude(1, 1)(w, r)
	})
	var first sync.WaitGroup
	first.Go(func() { _, _ = b.poller().Round(t.Context()) })
	<-asked
	e.answer(claude(2, 2))
	waited := 0
	report, err := b.poller().RoundOfAll(t.Context(), func() { waited++; close(release) })
	first.Wait()
	if err != nil || waited != 1 {
		t.Fatalf("got error %v, told %d times, want none and once", err, waited)
	}
	if f := b.find(report, "marlow"); f.Result != poll.WasRead || f.Reading.Windows[0].Utilization != 0.02 {
		t.Errorf("got %s, %+v, want a reading of its own", f.Result, f.Reading)
	}
}
