package refresh_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"holdfast/internal/core/credential"
	"holdfast/internal/store"
	"holdfast/internal/test/issuertest"
	"holdfast/internal/upkeep/refresh"
)

// An answer that is cut or never begins, after the issuer acted: the token is sent once
// more at once, and what comes of it depends on the issuer.
func TestLostAnswer(t *testing.T) {
	for _, c := range []struct {
		name   string
		fault  issuertest.Fault
		grace  time.Duration
		parked string
		want   issuertest.Counts
	}{
		{"cut, within the grace", issuertest.Fault{Cut: true}, time.Minute, "", issuertest.Counts{Requests: 2, Exchanges: 1, Repeats: 1}},
		{"dropped, within the grace", issuertest.Fault{Drop: true}, time.Minute, "", issuertest.Counts{Requests: 2, Exchanges: 1, Repeats: 1}},
		{"cut, no grace", issuertest.Fault{Cut: true}, 0, refresh.ReasonAnswerLost, issuertest.Counts{Requests: 2, Exchanges: 1, Reuses: 1, Revoked: 1}},
		{"dropped, no grace", issuertest.Fault{Drop: true}, 0, refresh.ReasonAnswerLost, issuertest.Counts{Requests: 2, Exchanges: 1, Reuses: 1, Revoked: 1}},
		{"200 without tokens", issuertest.Fault{Status: http.StatusOK, Body: `{}`}, 0, "", issuertest.Counts{Requests: 2, Exchanges: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := begin(t, issuertest.Options{Grace: c.grace}, nil)
			b.issuer.Next(c.fault)
			if c.parked == "" {
				b.good(b.refresher(nil), 2)
			} else {
				b.bad(b.refresher(nil), refresh.ErrOwner)
				b.bad(b.refresher(nil), refresh.ErrOwner)
			}
			if got := b.parked(); got != c.parked {
				t.Errorf("got parked %q, want %q", got, c.parked)
			}
			if got := b.renewal(); got.Spending != nil {
				t.Errorf("got the mark %+v left, want none", got.Spending)
			}
			b.counts(c.want)
		})
	}
}

// Both answers are lost: what became of the token stays open, and is asked again later, by
// whoever is next.
func TestLostTwice(t *testing.T) {
	b := begin(t, issuertest.Options{Grace: time.Hour}, nil)
	b.issuer.Next(issuertest.Fault{Cut: true}, issuertest.Fault{Drop: true}, issuertest.Fault{Status: http.StatusServiceUnavailable})
	b.bad(b.refresher(nil), refresh.ErrTransient)
	if got := b.renewal(); got.Spending == nil || !got.Spending.Lost || got.Spending.By != "" || got.Failures != 1 {
		t.Errorf("got renewal %+v, want the token's fate open and nobody at it", got)
	}
	b.clock.advance(5 * time.Second)
	b.bad(b.refresher(nil), refresh.ErrTransient) // one try, which tells nothing
	if got := b.renewal(); got.Spending == nil || !got.Spending.Lost || got.Spending.By != "" {
		t.Errorf("got renewal %+v, want the token's fate still open", got)
	}
	b.clock.advance(10 * time.Second)
	b.good(b.refresher(nil), 2)
	b.counts(issuertest.Counts{Requests: 4, Exchanges: 1, Repeats: 2})
}

// frozen lets a refresher send the token and be held up before it hears the answer.
func (b *bench) frozen(r *refresh.Refresher) (thaw func() (credential.Credential, error)) {
	b.Helper()
	f := issuertest.Fault{Hold: make(chan struct{}), Holding: make(chan struct{})}
	b.issuer.Next(f)
	type result struct {
		c   credential.Credential
		err error
	}
	done := make(chan result, 1)
	held := b.stored()
	go func() {
		c, err := r.Renew(context.Background(), b.acct, held)
		done <- result{c, err}
	}()
	<-f.Holding
	return func() (credential.Credential, error) {
		close(f.Hold)
		got := <-done
		return got.c, got.err
	}
}

// The holder is silent for longer than its lease: nobody else sends the token.
func TestFrozenHolderIsWaitedFor(t *testing.T) {
	b := begin(t, issuertest.Options{}, nil)
	thaw := b.frozen(b.refresher(nil))
	other := b.impatient()
	b.bad(other, refresh.ErrTransient)
	b.clock.advance(refresh.TakeoverAfter - time.Second) // the lease is over
	b.bad(other, refresh.ErrTransient)
	if got, err := thaw(); err != nil || got.Generation != 2 {
		t.Errorf("the holder: got generation %d and error %v, want 2", got.Generation, err)
	}
	b.good(other, 2)
	b.counts(issuertest.Counts{Requests: 1, Exchanges: 1})
}

// A mark that is old by the clock is not enough: this process has to have seen it for a
// while, or a machine that slept would be too quick for its own holder.
func TestTakeoverNeedsBoth(t *testing.T) {
	b := begin(t, issuertest.Options{Grace: 24 * time.Hour}, nil)
	thaw := b.frozen(b.refresher(nil))
	b.clock.advance(8 * time.Hour) // asleep
	other := b.impatient()
	b.bad(other, refresh.ErrTransient)
	b.clock.advance(time.Minute - time.Second)
	b.bad(other, refresh.ErrTransient)
	b.counts(issuertest.Counts{Requests: 1, Exchanges: 1})
	b.clock.advance(time.Second)
	b.good(other, 2)
	b.counts(issuertest.Counts{Requests: 2, Exchanges: 1, Repeats: 1})

	got, err := thaw()
	if err != nil || got.Generation != 2 {
		t.Errorf("the late holder: got generation %d and error %v, want what is stored", got.Generation, err)
	}
	if m := b.renewal().Spending; m != nil {
		t.Errorf("got the mark %+v left, want none", m)
	}
}

// The takeover is refused and the account parked; then the holder comes with a good grant.
func TestLateGrantEndsTheParking(t *testing.T) {
	b := begin(t, issuertest.Options{}, nil)
	thaw := b.frozen(b.refresher(nil))
	other := b.impatient()
	b.bad(other, refresh.ErrTransient)
	b.clock.advance(refresh.TakeoverAfter)
	b.issuer.Next(issuertest.Fault{Status: http.StatusBadRequest, Body: gone}) // an issuer that revokes nothing
	b.bad(other, refresh.ErrOwner)
	if got := b.parked(); got != refresh.ReasonAnswerLost {
		t.Errorf("got parked %q, want %q", got, refresh.ReasonAnswerLost)
	}
	if got, err := thaw(); err != nil || got.Generation != 2 || !b.issuer.Good(got) {
		t.Errorf("the late holder: got generation %d and error %v, want its grant", got.Generation, err)
	}
	if got := b.parked(); got != "" {
		t.Errorf("got parked %q, want not any more", got)
	}
	b.good(other, 2)
}

// A late grant never takes the place of another that was made of the same token.
func TestLateGrantIsDropped(t *testing.T) {
	b := begin(t, issuertest.Options{}, nil)
	thaw := b.frozen(b.refresher(nil))
	theirs := b.issuer.Login(time.Hour)
	theirs.Generation = 2
	b.save(theirs, 1)
	got, err := thaw()
	if err != nil || got.Access.Reveal() != theirs.Access.Reveal() || b.stored().Access.Reveal() != theirs.Access.Reveal() {
		t.Errorf("got generation %d and error %v, want what is stored, unchanged", got.Generation, err)
	}
}

// A holder that is held up between its mark and the sending does not send any more: by
// then others may.
func TestHeldUpBeforeSending(t *testing.T) {
	b := begin(t, issuertest.Options{}, nil)
	r := b.refresherWith(func(o *refresh.Options) {
		o.Transport = roundTripper(func(req *http.Request) (*http.Response, error) {
			b.clock.advance(45 * time.Second) // while it connects
			return http.DefaultTransport.RoundTrip(req)
		})
	})
	b.bad(r, refresh.ErrTransient)
	b.counts(issuertest.Counts{})
	if m := b.renewal().Spending; m != nil {
		t.Errorf("got the mark %+v left, want none", m)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// failing refuses the writes of a kind while it is more than 0, and counts down; below 0
// it refuses for ever.
type failing struct {
	kind  store.Kind
	times int
}

func (f *failing) put(r store.Record) error {
	if r.Kind != f.kind || f.times == 0 {
		return nil
	}
	f.times--
	return store.ErrUnavailable
}

func TestSaveFails(t *testing.T) {
	t.Run("once", func(t *testing.T) {
		b := begin(t, issuertest.Options{}, nil)
		f := &failing{store.KindCredential, 1}
		b.good(b.refresher(f.put), 2)
		b.counts(issuertest.Counts{Requests: 1, Exchanges: 1})
	})
	t.Run("for a while", func(t *testing.T) {
		b := begin(t, issuertest.Options{}, nil)
		f := &failing{store.KindCredential, 7}
		r, other := b.refresher(f.put), b.impatient()
		for range 2 {
			b.bad(r, refresh.ErrTransient)
			b.bad(other, refresh.ErrTransient) // who waits as long as the holder may live
		}
		if got := r.Unsaved(); got != 1 {
			t.Errorf("got %d unsaved, want 1", got)
		}
		if err := r.Retry(t.Context()); err != nil {
			t.Errorf("retry: got %v, want no error", err)
		}
		if got := r.Unsaved(); got != 0 {
			t.Errorf("got %d unsaved, want 0", got)
		}
		b.good(other, 2)
		b.good(r, 2)
		b.counts(issuertest.Counts{Requests: 1, Exchanges: 1})
	})
	t.Run("for ever", func(t *testing.T) {
		b := begin(t, issuertest.Options{}, nil)
		f := &failing{store.KindCredential, -1}
		r, other := b.refresher(f.put), b.impatient()
		for i := range 20 {
			b.bad(r, refresh.ErrTransient)
			b.bad(other, refresh.ErrTransient) // who sees that the holder lives
			if got := b.renewal(); got.Failures != 2*i+1 || !got.FailingSince.Equal(beginning) || got.Spending == nil {
				t.Errorf("got renewal %+v, want the mark and %d failures", got, 2*i+1)
			}
			if err := r.Retry(t.Context()); err == nil {
				t.Error("retry: got no error")
			}
			b.bad(other, refresh.ErrTransient)
			b.clock.advance(refresh.TakeoverAfter - time.Second)
			b.bad(other, refresh.ErrTransient) // the mark is as old as the last try
		}
		if got := r.Unsaved(); got != 1 {
			t.Errorf("got %d unsaved, want 1", got)
		}
		b.counts(issuertest.Counts{Requests: 1, Exchanges: 1}) // never given up for the old one
	})
	t.Run("though it was applied", func(t *testing.T) {
		b := begin(t, issuertest.Options{}, nil)
		once := &failing{store.KindCredential, 1}
		r := b.refresherWith(func(o *refresh.Options) {
			o.Store = store.New(&unsure{Backend: b.open(), applies: true, fails: once.put}).Within(20 * time.Second)
		})
		b.good(r, 2)
		b.counts(issuertest.Counts{Requests: 1, Exchanges: 1})
	})
}

// What follows the save may fail: the grant is good all the same, and is noted later.
func TestNoteFails(t *testing.T) {
	for _, kind := range []store.Kind{store.KindState, store.KindRenewal} {
		b := begin(t, issuertest.Options{}, nil)
		armed := false
		r := b.refresher(func(rec store.Record) error {
			armed = armed || rec.Kind == store.KindCredential
			if armed && rec.Kind == kind {
				return store.ErrUnavailable
			}
			return nil
		})
		b.good(r, 2)
		if got := r.Unsaved(); got != 0 {
			t.Errorf("%s: got %d unsaved, want 0: it is saved", kind, got)
		}
		b.clock.advance(9 * time.Hour)
		b.good(b.refresher(nil), 3) // another is not kept from anything
	}
}

// The mark cannot be written, or whether it was is not known: nothing is sent.
func TestMarkFails(t *testing.T) {
	for _, applied := range []bool{false, true} {
		b := begin(t, issuertest.Options{}, nil)
		once := &failing{store.KindRenewal, 1}
		r := b.refresherWith(func(o *refresh.Options) {
			o.Store = store.New(&unsure{Backend: b.open(), applies: applied, fails: once.put}).Within(20 * time.Second)
		})
		b.bad(r, refresh.ErrTransient)
		b.counts(issuertest.Counts{})
		b.good(r, 2) // its own mark, and nothing was sent
		b.counts(issuertest.Counts{Requests: 1, Exchanges: 1})
	}
}

// The owner logs in after the login was read, and before its token is sent: it is not.
func TestOwnerLogsInBeforeTheSending(t *testing.T) {
	b := begin(t, issuertest.Options{}, nil)
	own := b.issuer.Login(time.Hour)
	own.Generation = 2
	r := b.refresher(func(rec store.Record) error {
		if rec.Kind == store.KindRenewal && b.stored().Generation == 1 {
			b.save(own, 1)
		}
		return nil
	})
	b.good(r, 2)
	b.counts(issuertest.Counts{})
	if m := b.renewal().Spending; m != nil {
		t.Errorf("got the mark %+v left, want none", m)
	}
}

// The owner logs in while an answer gets lost: the old token is not sent once more.
func TestOwnerLogsInWhileTheAnswerIsLost(t *testing.T) {
	b := begin(t, issuertest.Options{}, nil)
	own := b.issuer.Login(time.Hour)
	own.Generation = 2
	b.issuer.Next(issuertest.Fault{Drop: true})
	r := b.refresherWith(func(o *refresh.Options) {
		o.Transport = roundTripper(func(req *http.Request) (*http.Response, error) {
			resp, err := http.DefaultTransport.RoundTrip(req)
			b.save(own, 1)
			return resp, err
		})
	})
	b.good(r, 2)
	b.counts(issuertest.Counts{Requests: 1, Exchanges: 1})
}

// The holder wakes up and saves while its token is being sent once more: it leaves the
// other's mark alone, and the other, refused, finds its grant and parks nobody.
func TestHolderWakesUpDuringTheTakeover(t *testing.T) {
	b := begin(t, issuertest.Options{}, nil)
	thaw := b.frozen(b.refresher(nil))
	other := b.refresherWith(func(o *refresh.Options) {
		o.Wait = time.Nanosecond
		o.Transport = roundTripper(func(req *http.Request) (*http.Response, error) {
			b.issuer.Next(issuertest.Fault{Status: http.StatusBadRequest, Body: gone})
			resp, err := http.DefaultTransport.RoundTrip(req)
			if got, err := thaw(); err != nil || got.Generation != 2 {
				t.Errorf("the holder: got generation %d and error %v, want its grant", got.Generation, err)
			}
			if m := b.renewal().Spending; m == nil || !m.Lost {
				t.Errorf("got the mark %+v, want the other's", m)
			}
			return resp, err
		})
	})
	b.bad(other, refresh.ErrTransient)
	b.clock.advance(refresh.TakeoverAfter)
	got, err := other.Renew(t.Context(), b.acct, credential.Credential{Generation: 1})
	if err != nil && !errors.Is(err, refresh.ErrTransient) {
		t.Errorf("got generation %d and error %v, want the holder's grant, now or at the next look", got.Generation, err)
	}
	b.good(other, 2)
	if r := b.renewal(); b.parked() != "" || r.Spending != nil || len(r.Refused) != 0 {
		t.Errorf("got parked %q and renewal %+v, want neither parked nor anything left", b.parked(), r)
	}
}

// What spent nothing is no lost answer, even where that could not be noted.
func TestFailureThatIsNotNoted(t *testing.T) {
	b := begin(t, issuertest.Options{}, nil)
	writes := 0
	r := b.refresher(func(rec store.Record) error {
		if rec.Kind == store.KindRenewal {
			if writes++; writes == 2 {
				return store.ErrUnavailable
			}
		}
		return nil
	})
	b.issuer.Next(issuertest.Fault{Status: http.StatusServiceUnavailable}, issuertest.Fault{Status: http.StatusBadRequest, Body: gone})
	b.bad(r, refresh.ErrTransient)
	b.bad(r, refresh.ErrOwner)
	if got := b.parked(); got != refresh.ReasonRefused {
		t.Errorf("got parked %q, want %q", got, refresh.ReasonRefused)
	}
}

// unsure fails to answer some writes, having applied them or not.
type unsure struct {
	store.Backend
	applies bool
	fails   func(store.Record) error
}

func (u *unsure) Put(ctx context.Context, r store.Record, cond store.Condition) (store.Record, error) {
	if err := u.fails(r); err != nil {
		if u.applies {
			_, _ = u.Backend.Put(ctx, r, cond)
		}
		return store.Record{}, err
	}
	return u.Backend.Put(ctx, r, cond)
}
