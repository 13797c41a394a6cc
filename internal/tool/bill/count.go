package main

import (
	"context"
	"fmt"
	"io/fs"
	"regexp"
	"time"

	"holdfast/internal/core/alarm"
	"holdfast/internal/core/metric"
	"holdfast/internal/tool/cost"
)

// assumptions are what nobody can count here.
type assumptions struct {
	memory               float64 // MB
	stream, round, start time.Duration
	cold                 float64 // share of invocations
	body, answer         float64 // bytes
	requests             float64 // in a busy month
}

// deployment is what infra/ makes beside the table and the functions.
type deployment struct {
	// alarms are the metrics that alarms read, by alarm.
	alarms     []metric.Name
	dashboards int
}

var (
	alarmOf     = regexp.MustCompile(`(?s)Type: AWS::CloudWatch::Alarm\n.*?MetricName: (\w+)`)
	dashboardOf = regexp.MustCompile(`Type: AWS::CloudWatch::Dashboard\n`)
)

func readDeployment(infra fs.FS) (deployment, error) {
	var d deployment
	text, err := fs.ReadFile(infra, "alarms.yaml")
	if err != nil {
		return d, fmt.Errorf("read the deployment's alarms: %w", err)
	}
	for _, found := range alarmOf.FindAllSubmatch(text, -1) {
		d.alarms = append(d.alarms, metric.Name(found[1]))
	}
	if text, err = fs.ReadFile(infra, "dashboard.yaml"); err != nil {
		return d, fmt.Errorf("read the deployment's dashboard: %w", err)
	}
	d.dashboards = len(dashboardOf.FindAll(text, -1))
	return d, nil
}

// counted is all that was counted of one fleet.
type counted struct {
	fleet
	deployment
	requests []made
	// fields are those of the lines that the gateway logs.
	fields map[string]bool
	day    day
	// ofAccounts are the alarms that the poller keeps.
	ofAccounts []alarm.Alarm
}

func count(ctx context.Context, f fleet, d deployment) (counted, error) {
	c := counted{fleet: f, deployment: d}
	o, err := setUp(ctx, f)
	if err != nil {
		return c, err
	}
	if c.day, err = o.rounds(ctx); err != nil {
		return c, fmt.Errorf("count a day of rounds: %w", err)
	}
	if c.requests, c.fields, err = o.requests(ctx); err != nil {
		return c, fmt.Errorf("count requests: %w", err)
	}
	snap, err := o.store.Snapshot(ctx, false)
	if err != nil {
		return c, err
	}
	for _, a := range snap.Catalog.Accounts {
		c.ofAccounts = append(c.ofAccounts, alarm.Of("holdfast", a))
	}
	return c, nil
}

const (
	// platformLines are what Lambda logs of every invocation: START, END and REPORT.
	platformLines = 3*perEvent + len("START RequestId: 00000000-0000-4000-8000-000000000000 Version: $LATEST\n") +
		len("END RequestId: 00000000-0000-4000-8000-000000000000\n") +
		len("REPORT RequestId: 00000000-0000-4000-8000-000000000000\tDuration: 30000.00 ms\tBilled Duration: 30000 ms\tMemory Size: 128 MB\tMax Memory Used: 40 MB\t\n")
	// pollerMemory is the template's, in MB, and asideFor how long an answer takes that is
	// no stream.
	pollerMemory = 128
	asideFor     = time.Second
	// alarmsPerCall is how many alarms CloudWatch reports in one call.
	alarmsPerCall = 50
)

// idle is a month without a request, and without a dashboard, which is a parameter.
func (c counted) idle(a assumptions) cost.Quantities {
	const rounds, days = float64(cost.RoundsPerMonth), cost.HoursPerMonth / 24.0
	// A process looks at the alarms when it starts and every hour, and turns one on.
	calls := (rounds*a.cold + cost.HoursPerMonth) * float64(1+max(1, (len(c.ofAccounts)+alarmsPerCall-1)/alarmsPerCall))
	return cost.Quantities{
		cost.Requests:  rounds,
		cost.Compute:   rounds * cost.GBSeconds(pollerMemory, a.round.Seconds()+a.cold*a.start.Seconds()),
		cost.Reads:     c.day.reads*days + rounds*a.cold, // the data key, when a process starts
		cost.Writes:    c.day.writes * days,
		cost.Metrics:   c.day.seriesHours * days / cost.HoursPerMonth,
		cost.Alarms:    float64(len(c.alarms) + len(c.ofAccounts)),
		cost.Calls:     calls,
		cost.Logs:      cost.Gigabytes(c.day.logBytes*days + rounds*float64(platformLines)),
		cost.Key:       1,
		cost.KeyCalls:  rounds * a.cold,
		cost.Schedules: rounds,
	}
}

// perThousand is what a thousand requests add.
func (c counted) perThousand(a assumptions) cost.Quantities {
	q := cost.Quantities{}
	for _, m := range c.requests {
		took := asideFor
		if m.streams {
			took = a.stream
		}
		q = q.Plus(cost.Quantities{
			cost.Requests: 1,
			cost.Compute:  cost.GBSeconds(a.memory, took.Seconds()+a.cold*a.start.Seconds()),
			cost.Transfer: cost.Gigabytes(a.body + a.answer),
			cost.Reads:    m.reads,
			cost.Writes:   m.writes,
			cost.Logs:     cost.Gigabytes(m.logBytes + float64(platformLines)),
		}.Times(m.perThousand))
	}
	cold, warm := c.requests[0], c.requests[1]
	started := 1000 * a.cold
	return q.Plus(cost.Quantities{
		cost.Reads:    started * (cold.reads - warm.reads + 1), // and the data key
		cost.KeyCalls: started,
	})
}

// busy is a month with requests.
func (c counted) busy(a assumptions) cost.Quantities {
	return c.idle(a).Plus(c.perThousand(a).Times(a.requests / 1000))
}
