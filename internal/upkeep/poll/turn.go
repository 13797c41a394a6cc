package poll

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/credential"
	"holdfast/internal/core/hidden"
	"holdfast/internal/provider"
	"holdfast/internal/store"
	"holdfast/internal/store/vault"
	"holdfast/internal/upkeep/refresh"
)

const (
	// lookWithin bounds one call, and turnWithin all that is done about one account, except a
	// token that is being exchanged, which is awaited.
	lookWithin = 10 * time.Second
	turnWithin = 40 * time.Second
	// renewalNeeds is what must be left of a process's time to begin a renewal: two calls, and
	// what is stored around them.
	renewalNeeds = 45 * time.Second
	// mostTrouble bounds the words that are kept of a failure, in bytes: they are to be whole,
	// and what somebody else's error holds is not known.
	mostTrouble = 1000
)

// running is a round.
type running struct {
	*Poller
	at        time.Time
	everybody bool
	settings  catalog.Settings
	poll      store.PollRecord
	turns     []*turn
}

// turn is one account's part of a round. Only its own goroutine changes it while it runs.
type turn struct {
	Finding
	looker     provider.Looker
	credential credential.Credential
	// renew: the login is due.
	renew bool
	// before is the clock that the round began with.
	before store.Clock
}

// prepare reads what the round needs, plans it, and sets the clocks of those who will be
// looked at, so that they stay set whatever becomes of this process.
func (r *running) prepare(ctx context.Context, accounts []account.Account) error {
	var all, logins []account.ID
	for _, a := range accounts {
		all = append(all, a.ID)
		if a.Kind == account.Subscription {
			logins = append(logins, a.ID)
		}
	}
	view, err := r.Store.Read(ctx, store.Query{States: all, Credentials: logins})
	if err != nil {
		return err
	}
	var open vault.Vault
	if len(logins) > 0 {
		if open.Box, err = r.OpenBox(ctx); err != nil {
			return fmt.Errorf("open the data key: %w", err)
		}
	}
	for _, a := range accounts {
		t := &turn{looker: r.Lookers[a.Provider], before: r.poll.Clocks[a.ID]}
		t.Account, t.State = a, view.States[a.ID]
		t.Clock = noticed(t.before, t.State.State)
		t.before = t.Clock
		r.turns = append(r.turns, t)
		record, there := view.Credentials[a.ID]
		t.Result = Unwatched
		if !there {
			continue
		}
		if t.credential, err = open.Open(a.ID, record); err != nil {
			t.Trouble = "its stored credential cannot be opened"
			r.Log.Error("open a credential", "account", a.Name, "error", err)
			continue
		}
		if !t.credential.MeantFor(a.BaseURL) {
			t.Trouble = "it is being pointed at another host"
			continue
		}
		if t.looker != nil {
			t.Watched = len(t.looker.Looks(a.Kind, t.credential)) > 0
		}
		t.Result = Plan(Subject{t.Account, t.State.State, t.Clock, t.Watched}, r.at, r.settings, r.everybody)
		t.Trouble = t.Clock.Trouble
		t.renew = r.Refresher != nil && renewable(t.State.State, t.credential, r.at) && refresh.Due(t.credential, r.at)
		if t.Result == Due {
			t.Clock = begun(t.Clock, r.at, r.settings.PollInterval)
		}
	}
	r.poll, err = r.setClocks(ctx, r.poll)
	return err
}

// renewable reports whether a renewal can come to anything. Of a login that is not renewed
// any more it can once that has ended: it is parked then.
func renewable(s account.State, c credential.Credential, now time.Time) bool {
	switch {
	case s.Parked != nil && s.Parked.Kind == account.BadCredential:
		return false
	case s.Ending != nil && s.Ending.Generation == c.Generation:
		return c.Expired(now)
	}
	return true
}

// take is one account's turn. looking ends with the round's time, process with the
// process's.
func (r *running) take(looking, process context.Context, t *turn) {
	ctx, cancel := context.WithTimeout(looking, turnWithin)
	defer cancel()
	defer func() {
		if v := recover(); v != nil {
			r.Log.Error("panic", "account", t.Account.Name, "panic", v, "stack", string(debug.Stack()))
			if t.Result == Due {
				r.failed(t, errors.New("an internal fault; the log has the details"))
			}
		}
	}()
	if t.renew {
		if err := r.renew(ctx, process, t); err != nil {
			t.RenewTrouble = Trouble(err)
			r.Log.Warn("renew a login ahead of time", "account", t.Account.Name, "error", err)
		}
	}
	if t.Result != Due {
		return
	}
	reading, err := r.look(ctx, process, t)
	switch {
	case err == nil:
		r.learn(process, t, reading)
	case looking.Err() != nil: // the round is at its end, which is not the endpoint's doing
		t.Result, t.Clock = NotReached, t.before
	default:
		r.failed(t, err)
	}
}

// look asks, renews the login and asks again where the credential is refused, and tries the
// next way where one fails otherwise.
func (r *running) look(ctx, process context.Context, t *turn) (account.Reading, error) {
	if t.credential.Expired(r.Now()) {
		if t.RenewTrouble != "" {
			return account.Reading{}, fmt.Errorf("the login has expired, and could not be renewed: %s", t.RenewTrouble)
		}
		if err := r.renew(ctx, process, t); err != nil {
			return account.Reading{}, fmt.Errorf("the login has expired: %w", err)
		}
	}
	calls := t.looker.Looks(t.Account.Kind, t.credential)
	var failures []error
	for n := 0; n < len(calls) && ctx.Err() == nil; {
		reading, err := r.ask(ctx, t, n, calls[n])
		if err == nil {
			return reading, nil
		}
		if !errors.Is(err, provider.ErrCredentialRefused) {
			failures = append(failures, err)
			n++
			continue
		}
		if t.Renewed || t.RenewTrouble != "" {
			return account.Reading{}, err
		}
		t.credential = t.credential.Refused()
		if renewal := r.renew(ctx, process, t); renewal != nil {
			return account.Reading{}, fmt.Errorf("%w, and the login is not renewed: %w", err, renewal)
		}
		calls = t.looker.Looks(t.Account.Kind, t.credential)
	}
	if len(failures) == 0 {
		failures = append(failures, errors.New("there was no time for it"))
	}
	return account.Reading{}, errors.Join(failures...)
}

func (r *running) ask(ctx context.Context, t *turn, n int, call provider.Call) (account.Reading, error) {
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	sent := r.Now()
	reply, err := r.Caller.Do(ctx, call, t.Account.BaseURL)
	if err != nil {
		return account.Reading{}, err
	}
	reading, err := t.looker.Looked(n, reply)
	reading.Sent = sent
	return reading.Cleaned(hidden.Clean), err
}

// renew gets a newer credential than the turn has, if there is time enough for that.
func (r *running) renew(ctx, process context.Context, t *turn) error {
	if r.Refresher == nil {
		return errors.New("nothing here renews logins")
	}
	if process.Err() != nil {
		return errors.New("the program is stopping")
	}
	if deadline, ok := process.Deadline(); ok && time.Until(deadline) < renewalNeeds {
		return errors.New("too little of the round's time is left")
	}
	next, err := r.Refresher.Renew(ctx, t.Account, t.credential)
	if errors.Is(err, refresh.ErrOwner) { // the account is parked or ends by now, and the report must show it
		if view, err := r.Store.Read(ctx, store.Query{States: []account.ID{t.Account.ID}}); err == nil {
			t.State = view.States[t.Account.ID]
		}
	}
	if err != nil {
		return err
	}
	t.credential, t.Renewed = next, true
	return nil
}

// learn folds a reading into the account's state.
func (r *running) learn(process context.Context, t *turn, reading account.Reading) {
	rules := account.Rules{BarePause: r.settings.BarePause, Overage: t.Account.Overage, FreshFor: r.settings.FreshFor}
	placed := t.State.Placed
	unparked := false
	folded, err := r.Store.Fold(context.WithoutCancel(process), t.Account.ID, t.State, func(s account.State) (account.State, bool) {
		believed, changed := s.Believed(r.Now())
		next := believed.Observe(reading, placed, rules).LoginOf(t.credential.Principal)
		unparked = s.Parked != nil && next.Parked == nil
		return next, changed || account.WorthStoring(s, next, rules.Redate())
	})
	if err != nil {
		// Its clock stays as it was set before: the endpoint is not asked again at once.
		t.Result, t.Trouble = HasFailed, "what it told could not be stored"
		r.Log.Error("store a reading", "account", t.Account.Name, "error", err)
		return
	}
	t.Result, t.Reading, t.State, t.Trouble = WasRead, reading, folded, ""
	if p := folded.Parked; p != nil && p.Kind == account.Funds {
		t.Clock = ReadParked(t.before, r.at, r.Jitter())
		return
	}
	t.Clock = Read(t.before, r.at, r.settings.PollInterval, r.Jitter(), unparked)
	if unparked {
		r.Log.Info("no longer parked: the usage endpoint shows room", "account", t.Account.Name)
	}
}

func (r *running) failed(t *turn, err error) {
	t.Result, t.Trouble = HasFailed, Trouble(err)
	t.Clock = Failed(t.before, r.at, r.settings.PollInterval, r.Jitter(), t.Trouble)
	r.Log.Warn("look at usage", "account", t.Account.Name, "failures", t.Clock.Failures, "next_at", t.Clock.NextAt, "error", err)
}

// Trouble is an error in the words that are kept and shown of a look or a renewal: one line
// that says each cause once, without what every look's error begins with. It has at most
// 1000 bytes, which is more than any sentence here has.
func Trouble(err error) string {
	text := strings.ReplaceAll(hidden.Clean(err.Error()), "look at usage: ", "")
	var causes []string
	for cause := range strings.FieldsFuncSeq(text, func(c rune) bool { return c == '\n' || c == '\r' }) {
		if !slices.Contains(causes, cause) {
			causes = append(causes, cause)
		}
	}
	text = strings.Join(causes, "; ")
	if len(text) > mostTrouble {
		text = strings.ToValidUTF8(text[:mostTrouble], "") + "…"
	}
	return text
}
