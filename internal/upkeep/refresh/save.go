package refresh

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/credential"
	"holdfast/internal/store"
	"holdfast/internal/store/vault"
	"holdfast/internal/upkeep/presence"
)

// grant is a new credential on its way into the store.
type grant struct {
	// spent is the credential it was made from, stored at revision; token its keyed hash.
	spent    credential.Credential
	token    string
	revision int64
	next     credential.Credential
	since    time.Time
	saved    bool
}

// saveTries bounds how often a grant is saved before the next Renew or Retry.
const saveTries = 3

// finish saves and settles a grant that this process has; nil where none exists, or
// none any more. Until it is saved it is given to nobody.
func (j *job) finish(ctx context.Context) error {
	g := j.memory.grant
	if g == nil {
		return nil
	}
	if !g.saved {
		superseded, err := j.save(ctx, g)
		if err != nil {
			// The alarm on lost logins looks for this message.
			j.Log.Error("grant not saved", "account", j.account.Name, "generation", g.next.Generation, "error", err)
			j.alive(ctx, g)
			return fmt.Errorf("save a renewed login: %w: %w", ErrTransient, err)
		}
		j.memory.sent = ""
		if superseded {
			j.keep(nil)
			j.Log.Warn("renewal came too late: another login is stored", "account", j.account.Name, "generation", g.next.Generation)
			return nil
		}
		g.saved = true
		j.keep(g)
		j.Log.Info("renewed", "account", j.account.Name, "generation", g.next.Generation, "took", j.Now().Sub(g.since), "ends", g.next.ExpiresAt)
	}
	// What is left is good to be done, and the grant good without.
	if err := errors.Join(j.welcome(ctx, g), j.renewed(ctx, g)); err != nil {
		j.Log.Warn("note a renewal", "account", j.account.Name, "error", err)
		return nil
	}
	j.keep(nil)
	return nil
}

// alive dates the mark anew, so that nobody takes it over from a holder that lives and has
// the new tokens, and counts a failure, for the metric. Where the store takes nothing at
// all this fails too; but then nobody else can begin either.
func (j *job) alive(ctx context.Context, g *grant) {
	now := j.Now().UTC()
	err := j.note(ctx, func(r store.Renewal) (store.Renewal, bool) {
		if r.Spending == nil || r.Spending.Token != g.token || r.Spending.By != j.holder {
			return r, false
		}
		mark := *r.Spending
		mark.Since, r.Spending = now, &mark
		return failed(r, "grant not saved", now), true
	})
	if err != nil {
		j.Log.Debug("date a mark anew", "account", j.account.Name, "error", err)
	}
}

// save writes the grant over the credential that it was made from, and over no other.
func (j *job) save(ctx context.Context, g *grant) (superseded bool, err error) {
	for range saveTries {
		if _, err = j.vault.Save(ctx, j.account.ID, g.next, g.revision); err == nil {
			return false, nil
		}
		if !errors.Is(err, store.ErrConflict) {
			continue
		}
		stored, revision, lerr := j.vault.Load(ctx, j.account.ID)
		switch {
		case lerr != nil:
			err = lerr
		case revision > 0 && stored.Generation == g.next.Generation && same(stored, g.next):
			return false, nil // a write that seemed to fail was applied
		case revision > 0 && j.hash(stored) == g.token:
			// The same login, written again, maybe with another scope.
			g.revision = revision
			g.next.Generation, g.next.Scope, g.next.BaseURL = stored.Generation+1, stored.Scope, stored.BaseURL
		default:
			return true, nil
		}
	}
	return false, err
}

func same(a, b credential.Credential) bool { return a.Access == b.Access && a.Refresh == b.Refresh }

// welcome ends the parking of an account whose login is good again, and makes refusals of
// older tokens void. Parked for something else, it stays parked.
func (j *job) welcome(ctx context.Context, g *grant) error {
	return j.foldState(ctx, func(s account.State) (account.State, bool) {
		if s.Parked != nil && s.Parked.Kind == account.Funds && s.Parked.Reason != ReasonNotEntitled {
			known := s.Generation
			s.Generation = max(s.Generation, g.next.Generation)
			return s, s.Generation != known
		}
		next := s.LoggedIn(g.next.Generation)
		return next, account.WorthStoring(s, next, account.RedateEvery)
	})
}

func (j *job) foldState(ctx context.Context, change func(account.State) (account.State, bool)) error {
	view, err := j.Store.Read(ctx, store.Query{States: ids(j.account.ID)})
	if err != nil {
		return err
	}
	_, err = j.Store.Fold(ctx, j.account.ID, view.States[j.account.ID], func(s account.State) (account.State, bool) {
		s, _ = s.Believed(j.Now())
		return change(s)
	})
	return err
}

// renewed removes the mark and forgets the failures.
func (j *job) renewed(ctx context.Context, g *grant) error {
	return j.note(ctx, func(r store.Renewal) (store.Renewal, bool) {
		if m := r.Spending; m != nil && m.Token == g.token && m.By != j.holder && m.By != "" {
			return r, false // taken over meanwhile: its holder finishes it
		}
		if r.Spending != nil && r.Spending.Token == g.token {
			r.Spending = nil
		}
		r.Failures, r.FailingSince, r.Failure, r.RetryAt = 0, time.Time{}, "", time.Time{}
		r.RenewedAt = j.Now().UTC()
		return r, true
	})
}

// noteTries bounds how often a renewal's record is written against other writers.
const noteTries = 5

// note changes the login's renewal as it is stored.
func (j *job) note(ctx context.Context, change func(store.Renewal) (store.Renewal, bool)) error {
	all, err := j.Store.Renewals(ctx, ids(j.account.ID))
	if err != nil {
		return err
	}
	stored := all[j.account.ID]
	for range noteTries {
		next, worth := change(stored)
		if !worth {
			return nil
		}
		next.Refused = slices.Clone(next.Refused)
		var ours bool
		if stored, ours, err = j.Store.PutRenewal(ctx, j.account.ID, next); err != nil || ours {
			return err
		}
	}
	return fmt.Errorf("note a renewal: %w", store.ErrConflict)
}

// Unsaved is the number of grants that were obtained and could not be saved yet.
func (r *Refresher) Unsaved() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, u := range r.unfinished {
		if !u.saved {
			n++
		}
	}
	return n
}

// Retry tries once more to save what Unsaved counts. The poller calls it every round, and
// a server before it stops: what is not saved by the end of the process is lost.
func (r *Refresher) Retry(ctx context.Context) error {
	r.mu.Lock()
	all := slices.Collect(maps.Values(r.unfinished))
	r.mu.Unlock()
	var errs []error
	for _, u := range all {
		errs = append(errs, r.retry(ctx, u.account))
	}
	return errors.Join(errs...)
}

// Close lets no renewal begin any more, waits for those that run, and then saves what is
// unsaved, all until ctx ends. A server calls it after its last request and before it
// closes its store: with an exchange that is cut off by the end of the process, a login may
// be lost. The error reports grants that are not saved.
func (r *Refresher) Close(ctx context.Context) error {
	r.closed.Store(true)
	r.mu.Lock()
	all := slices.Collect(maps.Keys(r.turns))
	r.mu.Unlock()
	for _, id := range all {
		leave, err := r.turn(ctx, id)
		if err != nil {
			return fmt.Errorf("wait for the last renewals: %w", err)
		}
		leave()
	}
	for attempt := 0; ; attempt++ {
		err := r.Retry(ctx)
		if r.Unsaved() == 0 {
			r.leave()
			return nil
		}
		if pause(ctx, attempt) != nil {
			return fmt.Errorf("save the last renewed logins: %w", err)
		}
	}
}

// leave ends what Announce began: nothing of this process's is open any more.
func (r *Refresher) leave() {
	if r.Presence == nil {
		return
	}
	if err := r.Presence.Leave(r.holder); err != nil {
		r.Log.Debug("take back the announcement of a process", "error", err)
	}
}

// Rescue brings renewals to an end that processes of this machine began and did not live to
// end: within seconds, since most issuers forgive a token that comes again soon, and few
// later. A server calls it when it begins and every few seconds. The error reports those
// that could not be ended now.
func (r *Refresher) Rescue(ctx context.Context) error {
	if r.Presence == nil {
		return nil
	}
	view, err := r.Store.Read(ctx, store.Query{Catalog: true})
	if err != nil {
		return err
	}
	logins := map[account.ID]account.Account{}
	for _, a := range view.Catalog.Accounts {
		if a.Kind == account.Subscription {
			logins[a.ID] = a
		}
	}
	if len(logins) == 0 {
		return nil
	}
	renewals, err := r.Store.Renewals(ctx, slices.Collect(maps.Keys(logins)))
	if err != nil {
		return err
	}
	var errs []error
	for id, renewal := range renewals {
		m := renewal.Spending
		if m == nil || m.By == "" || m.By == r.holder || r.Presence.Look(m.By) != presence.Gone {
			continue
		}
		if err := r.rescue(ctx, logins[id]); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", logins[id].Name, err))
		}
	}
	return errors.Join(errs...)
}

func (r *Refresher) rescue(ctx context.Context, a account.Account) error {
	box, err := r.OpenBox(ctx)
	if err != nil {
		return err
	}
	held, revision, err := vault.Vault{Store: r.Store, Box: box}.Load(ctx, a.ID)
	if err != nil || revision == 0 {
		return err
	}
	_, err = r.Renew(ctx, a, held)
	return err
}

func (r *Refresher) retry(ctx context.Context, a account.Account) error {
	leave, err := r.turn(ctx, a.ID)
	if err != nil {
		return err
	}
	defer leave()
	j, err := r.job(ctx, a)
	if err != nil {
		return err
	}
	return j.finish(ctx)
}

// keep notes for Unsaved and Retry how far a grant has come; nil for done.
func (j *job) keep(g *grant) {
	j.memory.grant = g
	j.mu.Lock()
	defer j.mu.Unlock()
	if g == nil {
		delete(j.unfinished, j.account.ID)
		return
	}
	j.unfinished[j.account.ID] = unfinished{j.account, g.saved}
}

// unfinished is a grant that is not saved, or not settled.
type unfinished struct {
	account account.Account
	saved   bool
}
