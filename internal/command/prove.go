package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"holdfast/internal/core/account"
	"holdfast/internal/core/credential"
	"holdfast/internal/core/hidden"
	"holdfast/internal/provider"
	"holdfast/internal/store"
	"holdfast/internal/transport/apicall"
	"holdfast/internal/upkeep/poll"
	"holdfast/internal/upkeep/refresh"
)

// proof is what a provider, asked about a login, made of it.
type proof struct {
	// held is the credential as it is stored now: renewed, where it had to be.
	held    credential.Credential
	renewed bool
	// reading is what the look told; empty where there was none.
	reading account.Reading
	// warning says why it is not known whether the login is good; empty if it is.
	warning string
}

// prove asks the provider about a login that is stored under a's id already, so that a
// grant which is obtained on the way is saved before it is used. An error means that the
// login was refused, or is stored no more; whatever else goes wrong only warns.
func (c *cli) prove(ctx context.Context, d *data, a account.Account, got obtained) (proof, error) {
	p := proof{held: got.Credential}
	refused := func(why string) error {
		return fmt.Errorf("%s refused this login (%s); log in with %s again, then import its file", a.Provider, why, got.login.Client)
	}
	if p.held.Expired(c.Now()) {
		if err := c.renew(ctx, d, a, &p); err != nil {
			return p, refused(poll.Trouble(err))
		}
		if p.warning != "" {
			return p, nil
		}
	}
	reading, asked, err := c.look(ctx, a, p.held)
	if errors.Is(err, provider.ErrCredentialRefused) && !p.renewed && !p.held.Refresh.Empty() {
		if err := c.renew(ctx, d, a, &p); err != nil {
			return p, refused(poll.Trouble(err))
		}
		if p.warning != "" {
			return p, nil
		}
		reading, asked, err = c.look(ctx, a, p.held)
	}
	switch {
	case errors.Is(err, provider.ErrCredentialRefused):
		return p, refused("its access token")
	case err != nil:
		p.warning = poll.Trouble(err)
	case asked:
		p.reading = reading
	case !p.renewed:
		p.warning = "there is nothing to ask with this login but a model, and that is not done"
	}
	return p, nil
}

// look asks once how much of an account's allowance is used. It is false where the provider
// has nothing to ask.
func (c *cli) look(ctx context.Context, a account.Account, held credential.Credential) (_ account.Reading, asked bool, err error) {
	wire := c.Providers[a.Provider]
	caller := apicall.Caller{Transport: apicall.NewTransport(), Version: c.Build.Version, Now: c.Now}
	for n, call := range wire.Looks(a.Kind, held) {
		asked = true
		var reply provider.Reply
		if reply, err = caller.Do(ctx, call, a.BaseURL); err != nil {
			continue
		}
		var reading account.Reading
		if reading, err = wire.Looked(n, reply); err == nil || errors.Is(err, provider.ErrCredentialRefused) {
			return reading.Cleaned(hidden.Clean), true, err
		}
	}
	return account.Reading{}, asked, err
}

// unhurried is a context for a command that may renew a login: an interrupt ends it, and
// does not come between a token that was sent and its answer.
func unhurried(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, stopSignals()...)
}

// stopSignals are the signals that ask this program to end. A terminal that is closed says
// so too, unless whoever started the program had it ignored, as nohup does.
func stopSignals() []os.Signal {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}

// refusedImports is where refused refresh tokens of logins are remembered that never came
// to be an account's. No account has this id.
const refusedImports account.ID = "imports"

// mostRefused bounds how many are remembered.
const mostRefused = 50

// renew renews the login that p holds and is stored under a's id. An error means that it
// was refused, and says how in a few words; whatever else goes wrong is p's warning.
func (c *cli) renew(ctx context.Context, d *data, a account.Account, p *proof) error {
	box, err := d.box(ctx)
	if err != nil {
		return err
	}
	token := refresh.TokenHash(box, p.held)
	before, err := refusedBefore(ctx, d, token)
	if err != nil {
		return err
	}
	if before {
		return errors.New("its refresh token was refused before and is not sent again")
	}
	r, err := c.refresher(d, slog.New(slog.DiscardHandler)) // what is to be said, the command says
	if err != nil {
		return err
	}
	next, err := r.Renew(ctx, a, p.held)
	if r.Unsaved() > 0 {
		if c.saveLogins(ctx, r) == nil {
			v, verr := d.vault(ctx)
			if verr != nil {
				return verr
			}
			next, _, err = v.Load(context.WithoutCancel(ctx), a.ID)
		}
	}
	switch {
	case err == nil:
		p.held, p.renewed = next, true
	case errors.Is(err, refresh.ErrOwner):
		return c.refusal(ctx, d, a, token)
	case r.Unsaved() > 0:
		return errors.New("it was renewed, and its new tokens could not be saved")
	default:
		p.warning = poll.Trouble(err)
	}
	return nil
}

// refusal says why a renewal needs the owner, and remembers a token that was refused.
func (c *cli) refusal(ctx context.Context, d *data, a account.Account, token string) error {
	view, err := d.Read(ctx, store.Query{States: []account.ID{a.ID}})
	if err != nil {
		return err
	}
	if parked := view.States[a.ID].Parked; parked != nil && parked.Reason == refresh.ReasonNotEntitled {
		return errors.New("it is good, but its plan does not include this use")
	}
	kept, err := d.Renewals(ctx, []account.ID{refusedImports})
	for range 5 {
		if err != nil {
			return err
		}
		stored := kept[refusedImports]
		stored.Refused = append(slices.Clone(stored.Refused), token)
		stored.Refused = stored.Refused[max(0, len(stored.Refused)-mostRefused):]
		now, ours, perr := d.PutRenewal(ctx, refusedImports, stored)
		if ours {
			break
		}
		kept[refusedImports], err = now, perr
	}
	return errors.New("its refresh token")
}

// refusedBefore reports whether a refresh token, by its keyed hash, was refused for good.
func refusedBefore(ctx context.Context, d *data, token string) (bool, error) {
	all, err := d.catalog(ctx)
	if err != nil {
		return false, err
	}
	ids := []account.ID{refusedImports}
	for _, a := range all.Accounts {
		ids = append(ids, a.ID)
	}
	renewals, err := d.Renewals(ctx, ids)
	if err != nil {
		return false, err
	}
	for _, r := range renewals {
		if slices.Contains(r.Refused, token) {
			return true, nil
		}
	}
	return false, nil
}

// learn folds whose the login is, and what a look at its usage read, into the account's state.
func (c *cli) learn(ctx context.Context, d *data, a account.Account, p proof) error {
	if p.reading.Empty() && p.held.Principal == "" {
		return nil
	}
	view, err := d.Read(ctx, store.Query{Catalog: true, States: []account.ID{a.ID}})
	if err != nil {
		return err
	}
	base := view.States[a.ID]
	rules := account.Rules{BarePause: view.Catalog.Settings().BarePause, Overage: a.Overage}
	_, err = d.Fold(ctx, a.ID, base, func(s account.State) (account.State, bool) {
		believed, changed := s.Believed(c.Now())
		next := believed.Observe(p.reading, base.Placed, rules).LoginOf(p.held.Principal)
		return next, changed || account.WorthStoring(s, next, rules.Redate())
	})
	return err
}

// whose are the states of a snapshot, each with the principal of its credential, as far as
// that can be opened from here.
func (d *data) whose(ctx context.Context, snap store.Snapshot) map[account.ID]account.State {
	states := map[account.ID]account.State{}
	v, err := d.vault(ctx)
	for _, a := range snap.Catalog.Accounts {
		s := snap.States[a.ID].State
		if stored, there := snap.Credentials[a.ID]; err == nil && there {
			if held, err := v.Open(a.ID, stored); err == nil {
				s = s.LoginOf(held.Principal)
			}
		}
		states[a.ID] = s
	}
	return states
}

// sayOfSharers names accounts that have the same limits: two logins of one principal are
// not twice as much.
func (c *cli) sayOfSharers(ctx context.Context, d *data, name string) error {
	snap, err := d.Snapshot(ctx, true)
	if err != nil {
		return err
	}
	byID := d.whose(ctx, snap)
	states := make([]account.State, len(snap.Catalog.Accounts))
	at := -1
	for i, a := range snap.Catalog.Accounts {
		states[i] = byID[a.ID]
		if a.Name == name {
			at = i
		}
	}
	if at < 0 {
		return nil // removed just now
	}
	if others := account.Sharing(snap.Catalog.Accounts, states, at); len(others) > 0 {
		c.say("It has the same limits as %s: together they spend one allowance.", strings.Join(others, ", "))
	}
	return nil
}
