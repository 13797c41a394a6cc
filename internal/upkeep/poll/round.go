package poll

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/store"
)

const (
	leaseName = "poll"
	// roundWithin bounds the looks of a round: the next one is a minute away.
	roundWithin = 50 * time.Second
	// wrapUp is kept of a process's time for what is written in the end.
	wrapUp = 5 * time.Second
	// leaseFor is longer than a round with a renewal that is awaited.
	leaseFor = 3 * time.Minute
	// apart is the least time between two rounds: with several pollers on one store each
	// would otherwise make its own every minute.
	apart = 30 * time.Second
	// beside is how many accounts have their turn at once.
	beside = 6
	// waitFor is how long somebody who asks for a round waits for one that runs, and
	// waitStep how often it looks.
	waitFor  = 90 * time.Second
	waitStep = time.Second
)

// Round makes a round, unless one is running or began a short while ago. An error says that
// there was none, or that what it found could not be written down; trouble with single
// accounts is in the Report. It returns soon after ctx ends, unless a token is being
// exchanged by then.
func (p *Poller) Round(ctx context.Context) (Report, error) {
	return p.round(ctx, false)
}

// RoundOfAll makes a round that asks everybody whatever their clocks say, except those who
// are backed off from. It calls waiting before it waits for a round that is running.
func (p *Poller) RoundOfAll(ctx context.Context, waiting func()) (Report, error) {
	patience, cancel := context.WithTimeout(ctx, waitFor)
	defer cancel()
	for told := false; ; told = true {
		report, err := p.round(ctx, true)
		if err != nil || report.Skipped == "" {
			return report, err
		}
		if !told {
			waiting()
		}
		timer := time.NewTimer(waitStep)
		select {
		case <-timer.C:
		case <-patience.Done():
			timer.Stop()
			if ctx.Err() != nil {
				return Report{}, context.Cause(ctx)
			}
			return Report{}, fmt.Errorf("another round is running for %s already; try again in a minute", waitFor)
		}
	}
}

func (p *Poller) round(ctx context.Context, everybody bool) (report Report, err error) {
	defer func() {
		if v := recover(); v != nil {
			p.Log.Error("panic", "panic", v, "stack", string(debug.Stack()))
			report, err = Report{}, errors.New("the round met an internal fault; the log has the details")
		}
	}()
	now := p.Now()
	lease, ours, err := p.Store.TakeLease(ctx, leaseName, rand.Text(), now, now.Add(leaseFor))
	if err != nil {
		return Report{}, fmt.Errorf("begin a round: %w", err)
	}
	if !ours {
		return Report{At: now, Skipped: "another round is running"}, nil
	}
	defer func() {
		if err := p.Store.ReleaseLease(context.WithoutCancel(ctx), lease, p.Now()); err != nil {
			p.Log.Warn("release the lease of a round", "error", err) // it ends by itself
		}
	}()
	view, err := p.Store.Read(ctx, store.Query{Catalog: true, Poll: true})
	if err != nil {
		return Report{}, fmt.Errorf("begin a round: %w", err)
	}
	if since := now.Sub(view.Poll.RoundAt); !everybody && since >= 0 && since < apart {
		return Report{At: now, Skipped: "a round began " + since.Truncate(time.Second).String() + " ago"}, nil
	}
	r := &running{Poller: p, at: now, everybody: everybody, settings: view.Catalog.Settings(), poll: view.Poll}
	if err := r.prepare(ctx, view.Catalog.Accounts); err != nil {
		return Report{}, fmt.Errorf("begin a round: %w", err)
	}
	r.work(ctx)
	r.history(ctx)
	err = errors.Join(r.record(ctx), r.serving(ctx), r.Store.WriteEvents(context.WithoutCancel(ctx), p.Now()))
	report = Report{At: now, Catalog: *view.Catalog.Catalog, Accounts: make([]Finding, len(r.turns))}
	for i, t := range r.turns {
		report.Accounts[i] = t.Finding
	}
	p.logRound(report)
	if err != nil {
		return report, fmt.Errorf("write down what a round found: %w", err)
	}
	return report, nil
}

// serving writes down who serves under policy order, by what the looks have told: with no
// request to see it, a switch is in the history all the same.
func (r *running) serving(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	looks, err := r.Store.LookServing(ctx, r.Now)
	return errors.Join(err, r.Store.RecordServing(ctx, looks))
}

// work gives everybody who needs it a turn.
func (r *running) work(ctx context.Context) {
	within := roundWithin
	if deadline, ok := ctx.Deadline(); ok {
		within = min(within, time.Until(deadline)-wrapUp)
	}
	looking, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if r.Refresher != nil && r.Refresher.Unsaved() > 0 {
		if err := r.Refresher.Retry(looking); err != nil {
			r.Log.Error("save a renewed login", "error", err)
		}
	}
	var due []*turn
	for _, t := range r.turns {
		if t.Result == Due || t.renew {
			due = append(due, t)
		}
	}
	// Who waits longest goes first, so that slow hosts starve nobody for ever.
	slices.SortStableFunc(due, func(a, b *turn) int { return a.before.LookedAt.Compare(b.before.LookedAt) })
	places := make(chan struct{}, beside)
	var all sync.WaitGroup
	for _, t := range due {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			r.take(looking, ctx, t)
		})
	}
	all.Wait()
}

// record writes the clocks as the turns left them.
func (r *running) record(ctx context.Context) error {
	_, err := r.setClocks(context.WithoutCancel(ctx), r.poll)
	return err
}

// setClocks writes the clocks of all accounts that there are, and drops those of others.
func (r *running) setClocks(ctx context.Context, base store.PollRecord) (store.PollRecord, error) {
	return r.Store.ChangePoll(ctx, base, func(stored store.Poll) store.Poll {
		clocks := map[account.ID]store.Clock{}
		for _, t := range r.turns {
			c := t.Clock
			if s := stored.Clocks[t.Account.ID]; s.LookedAt.After(r.at) && !s.LookedAt.After(r.Now().Add(astray)) {
				c = s // a later round's, of which this one, frozen meanwhile, does not know
			}
			if c != (store.Clock{}) {
				clocks[t.Account.ID] = c
			}
		}
		if r.at.After(stored.RoundAt) || stored.RoundAt.After(r.Now().Add(astray)) {
			stored.RoundAt = r.at
		}
		stored.Clocks = clocks
		return stored
	})
}

// history adds a point for every account that was read since its last one.
func (r *running) history(ctx context.Context) {
	ctx = context.WithoutCancel(ctx) // each call is bounded by the store
	for _, t := range r.turns {
		point, worth := pointOf(t.State.State, t.Clock.PointAt)
		if !worth {
			continue
		}
		if _, err := r.Store.AddHistory(ctx, t.Account.ID, point); err != nil {
			r.Log.Warn("write history", "account", t.Account.Name, "error", err)
			continue
		}
		t.Clock.PointAt = point.At
	}
}

func (p *Poller) logRound(report Report) {
	counts := map[Result]int{}
	for _, f := range report.Accounts {
		counts[f.Result]++
	}
	level := p.Log.Debug
	if counts[WasRead]+counts[HasFailed]+counts[NotReached] > 0 {
		level = p.Log.Info
	}
	attributes := []any{"took_ms", p.Now().Sub(report.At).Milliseconds()}
	for _, result := range slices.SortedFunc(maps.Keys(counts), cmp.Compare[Result]) {
		attributes = append(attributes, "result_"+string(result), counts[result])
	}
	level("round", attributes...)
}
