package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"holdfast/internal/core/metric"
	"holdfast/internal/logging"
	"holdfast/internal/provider"
	"holdfast/internal/store/vault"
	"holdfast/internal/transport/apicall"
	"holdfast/internal/upkeep/poll"
	"holdfast/internal/upkeep/refresh"
)

// roundsPerDay is one a minute.
const roundsPerDay = 24 * 60

// day is what a day of rounds came to.
type day struct {
	operations
	logBytes float64
	// seriesHours adds up the hours in which each series of a metric was written: a series is
	// charged for those.
	seriesHours float64
	// looks are the calls to providers.
	looks int
}

// rounds makes a day of rounds, as the function does, with nobody sending requests.
func (o *owner) rounds(ctx context.Context) (day, error) {
	out := lines{fields: map[string]bool{}}
	log := slog.New(logging.New(&out, slog.LevelInfo))
	logins, err := refresh.New(refresh.Options{
		Store: o.store, OpenBox: func(context.Context) (refresh.Box, error) { return o.box, nil },
		Renewers: provider.Renewers(providers), Transport: o.up, Now: o.clock, Log: log,
	})
	if err != nil {
		return day{}, err
	}
	calls := &looks{RoundTripper: o.up}
	p, err := poll.New(poll.Options{
		Store: o.store, OpenBox: func(context.Context) (vault.Box, error) { return o.box, nil },
		Caller: apicall.Caller{Transport: calls, Now: o.clock}, Lookers: provider.Lookers(providers), Refresher: logins,
		Log: log, Now: o.clock, Jitter: func() float64 { return 0.5 },
	})
	if err != nil {
		return day{}, err
	}
	var d day
	written := map[string]bool{}
	o.records.take()
	for range roundsPerDay {
		if report, err := p.Round(ctx); err != nil || report.Skipped != "" {
			return day{}, fmt.Errorf("make a round: %w (skipped: %q)", err, report.Skipped)
		}
		f, err := p.Fleet(ctx)
		if err != nil {
			return day{}, err
		}
		log.Info("fleet", "figures", metric.FiguresOf(f))
		data := metric.OfFleet(f)
		for _, line := range metric.Lines(o.now, data) {
			_, _ = out.Write(append(line, '\n')) // into memory
		}
		for _, each := range data {
			written[fmt.Sprint(each.Name, each.Dimensions, o.now.Unix()/3600)] = true
		}
		o.advance(time.Minute)
	}
	d.seriesHours = float64(len(written))
	d.operations, d.logBytes, d.looks = o.records.take(), out.take(), int(calls.n.Load())
	return d, nil
}

// looks counts what it carries.
type looks struct {
	http.RoundTripper
	n atomic.Int64
}

func (l *looks) RoundTrip(r *http.Request) (*http.Response, error) {
	l.n.Add(1)
	return l.RoundTripper.RoundTrip(r)
}
