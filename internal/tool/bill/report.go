package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"holdfast/internal/core/metric"
	"holdfast/internal/tool/cost"
)

// report prints the tables.
func report(w io.Writer, a assumptions, all []counted) error {
	p := printer{w: w}
	p.say("What a holdfast in AWS costs, in USD: list prices of %s, %s, arm64, without tax.", cost.Region, cost.Dated)
	p.say("\n%-26s %17s %14s  %s", "", "USD", "free a month", "says")
	for _, each := range cost.Prices {
		price := fmt.Sprintf("%.2f", each.USD)
		if each.USD < 0.01 {
			price = fmt.Sprintf("%.4f a million", 1e6*each.USD)
		}
		p.say("%-26s %17s %14.10g  %s", each.Item, price, each.Free, each.Source)
	}
	p.say("")
	p.say("Assumed: %.0f requests in a busy month; answers stream for %v at %.0f MB; a request", a.requests, a.stream, a.memory)
	p.say("has %.0f KB and an answer %.0f KB; a round takes %v; %.0f %% of the invocations start a process, in %v.", a.body/1000, a.answer/1000, a.round, 100*a.cold, a.start)
	p.say("All else is counted. The logins are of the three providers in turn, and the requests Anthropic's;")
	p.say("\"12 of one\" are twelve of Anthropic's. Left out, being cents: the table's storage and backups, kept logs, mails.")
	p.say("A deployment with Dashboard=true adds %s a month; an AWS account has three dashboards free.", usd(float64(all[0].dashboards)*cost.PriceOf(cost.Dashboards).USD))

	p.heading("One request: round trips to the store, units read/written; bytes logged", all)
	for i, k := range all[0].requests {
		p.row(k.name, all, func(c counted) string {
			m := c.requests[i]
			return fmt.Sprintf("%d: %.0f/%.0f", m.calls, m.reads, m.writes)
		})
	}
	p.row("bytes logged, pinned", all, func(c counted) string { return fmt.Sprintf("%.0f", c.requests[2].logBytes+float64(platformLines)) })
	p.say("Of a thousand:%s.", mix())

	p.heading("A thousand requests", all)
	p.bill(all, false, func(c counted) cost.Quantities { return c.perThousand(a) })

	p.heading("A day of rounds, one a minute: units read/written, looks at usage endpoints", all)
	p.row("a day", all, func(c counted) string { return fmt.Sprintf("%.0f/%.0f", c.day.reads, c.day.writes) })
	p.row("looks", all, func(c counted) string { return fmt.Sprint(c.day.looks) })
	p.row("hours of series of metrics", all, func(c counted) string { return fmt.Sprint(c.day.seriesHours) })
	p.row("alarms", all, func(c counted) string { return fmt.Sprint(len(c.alarms) + len(c.ofAccounts)) })

	p.heading("A month without a request", all)
	idle := func(c counted) cost.Quantities { return c.idle(a) }
	p.bill(all, false, idle)
	p.row("with what every account has free", all, func(c counted) string { return usd(cost.Total(cost.Bill(idle(c), true))) })

	p.heading(fmt.Sprintf("A month with %.0f requests", a.requests), all)
	busy := func(c counted) cost.Quantities { return c.busy(a) }
	p.bill(all, false, busy)
	p.row("with what every account has free", all, func(c counted) string { return usd(cost.Total(cost.Bill(busy(c), true))) })

	p.say("")
	p.say("What costs most, of the list price:")
	last := all[len(all)-2] // twelve logins of all providers
	for _, each := range []struct {
		what string
		q    cost.Quantities
	}{{"a thousand requests", last.perThousand(a)}, {"an idle month", last.idle(a)}, {"a busy month", last.busy(a)}} {
		l, share := cost.Largest(cost.Bill(each.q, false))
		p.say("  %s with %s: %s, %.0f %% (%s)", each.what, last.name, l.Item, 100*share, usd(l.USD))
	}
	p.say("")
	p.say("Series of metrics. Each costs %s a month at most: it is charged for the hours in which it is written,", usd(cost.PriceOf(cost.Metrics).USD))
	p.say("and is written only while its alarm has something to hear.")
	for _, d := range metric.Definitions {
		p.say("  %-18s by %-16s from the %s", d.Name, strings.Join(d.Dimensions[0], ", "), d.From)
	}

	p.say("")
	p.say("100,000 streams a month by their duration, Lambda alone")
	p.say("%-34s %10s %10s", "", "128 MB", "256 MB")
	for _, took := range []time.Duration{10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute} {
		of := func(memory float64) string {
			return usd(cost.Total(cost.Bill(cost.Quantities{cost.Requests: 100_000, cost.Compute: 100_000 * cost.GBSeconds(memory, took.Seconds())}, false)))
		}
		p.say("%-34s %10s %10s", took, of(128), of(256))
	}
	return p.err
}

// mix says how many of a thousand requests are of which kind.
func mix() string {
	var b strings.Builder
	for _, k := range kinds {
		if k.perThousand > 0 {
			fmt.Fprintf(&b, " %.0f %s,", k.perThousand, strings.ReplaceAll(k.name, ",", ":"))
		}
	}
	return strings.TrimSuffix(b.String(), ",")
}

func usd(v float64) string {
	if v != 0 && v < 0.01 {
		return fmt.Sprintf("%.4f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// printer writes lines, until one fails.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) say(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

func (p *printer) heading(what string, all []counted) {
	p.say("\n%s", what)
	p.row("", all, func(c counted) string { return c.name })
}

func (p *printer) row(label string, all []counted, of func(counted) string) {
	var b strings.Builder
	fmt.Fprintf(&b, "%-34s", label)
	for _, c := range all {
		fmt.Fprintf(&b, " %10s", of(c))
	}
	p.say("%s", b.String())
}

// bill prints a bill's lines, each fleet in its column, and the sums.
func (p *printer) bill(all []counted, free bool, of func(counted) cost.Quantities) {
	for _, each := range cost.Prices {
		charged := false
		for _, c := range all {
			charged = charged || of(c)[each.Item] > 0
		}
		if !charged {
			continue
		}
		p.row(string(each.Item), all, func(c counted) string {
			for _, l := range cost.Bill(of(c), free) {
				if l.Item == each.Item {
					return usd(l.USD)
				}
			}
			return usd(0)
		})
	}
	p.row("sum", all, func(c counted) string { return usd(cost.Total(cost.Bill(of(c), free))) })
}
