package gateway_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/metric"
	"holdfast/internal/status"
)

// One judge: whether an account is blocked, the pick, the status, the metric and the health
// answer alike, before its owner allows paid overage and after, for each provider and policy.
func TestOneJudgeOfOverage(t *testing.T) {
	asks := map[account.Provider]func(n int) ask{
		account.Anthropic: func(n int) ask { return ask{session: session(n), model: "claude-sonnet-5"} },
		account.OpenAI:    func(n int) ask { return codexAsk(n, "gpt-5.5") },
		account.XAI:       func(n int) ask { return grokAsk(n) },
	}
	for _, p := range account.Providers {
		for _, policy := range []catalog.PolicyName{catalog.Score, catalog.Order, catalog.SoonestReset} {
			for _, window := range []string{account.FiveHour, account.Weekly, account.WeeklyOf("sonnet")} {
				family := account.FamilyOf(window)
				if family != "" && p != account.Anthropic {
					continue // no other provider has windows of families
				}
				t.Run(string(p)+" "+string(policy)+" "+window, func(t *testing.T) {
					b := newBench(t)
					b.add(p, account.Subscription, "marlow")
					b.change(func(c catalog.Catalog) catalog.Catalog {
						next, err := c.SetPolicy(p, policy, 0)
						if err != nil {
							t.Fatal(err)
						}
						return next
					})
					r := reading(b.clock.now(), 0.4, 0.4)
					r.Overage.Charged, r.Claim = true, window
					if family != "" {
						r.Windows = append(r.Windows, account.WindowReading{Name: window, Utilization: 0.4, HasUtilization: true, ResetAt: r.At.Add(100 * time.Hour)})
					}
					b.fold("marlow", func(s account.State) account.State { return s.Observe(r, 0, account.Rules{}) })
					b.clock.advance(3 * time.Second)

					b.judged(family == "", "while overage is denied", judgement{blocked: true, family: family != ""}, asks[p](1))
					b.change(func(c catalog.Catalog) catalog.Catalog {
						next, err := c.SetOverage("marlow", true)
						if err != nil {
							t.Fatal(err)
						}
						return next
					})
					b.clock.advance(3 * time.Second)
					b.judged(false, "once overage is allowed", judgement{}, asks[p](2))
				})
			}
		}
	}
}

// judgement is what everybody is to say of the only account: it is blocked, as a whole or for
// the family of the default models alone.
type judgement struct{ blocked, family bool }

func (b *bench) judged(exhausted bool, when string, want judgement, request ask) {
	b.t.Helper()
	snap, err := b.store.Snapshot(b.t.Context(), true)
	if err != nil {
		b.t.Fatal(err)
	}
	var report status.Report
	admin := b.newKey(catalog.ClientKey{Name: "admin " + when, Admin: true})
	b.clock.advance(3 * time.Second)
	if err := json.Unmarshal([]byte(b.do(ask{method: "GET", path: "/_holdfast/status.json", key: admin}).body), &report); err != nil {
		b.t.Fatal(err)
	}
	state, headroom, models := status.Ready, 0.6, 0
	switch {
	case want.family:
		models = 1
	case want.blocked:
		state, headroom = status.Cooldown, 0
	}
	a, of := report.Accounts[0], report.Providers[0]
	if a.State != state || len(a.BlockedModels) != models || of.BestHeadroom == nil || *of.BestHeadroom != headroom {
		b.t.Errorf("%s, the status: got %s %q, %d blocked models, best headroom %v, want %s, %d, %v", when, a.State, a.Reason, len(a.BlockedModels), of.BestHeadroom, state, models, headroom)
	}
	states := map[account.ID]account.State{}
	for id, s := range snap.States {
		states[id] = s.State
	}
	figures := metric.FiguresOf(metric.Fleet{Now: b.clock.now(), Catalog: *snap.Catalog.Catalog, States: states}).Providers[0]
	if figures.Exhausted != exhausted || (figures.Ready == 0) != exhausted {
		b.t.Errorf("%s, the metric: got exhausted %v with %d ready, want %v", when, figures.Exhausted, figures.Ready, exhausted)
	}
	code := http.StatusOK
	if want.blocked {
		code = http.StatusServiceUnavailable
	}
	if r := b.do(ask{method: "GET", path: "/_holdfast/health"}); r.status != code {
		b.t.Errorf("%s, the health: got %d, want %d", when, r.status, code)
	}
	if r := b.do(request); (r.status == http.StatusOK) == want.blocked {
		b.t.Errorf("%s, a pick: got %d %s, want blocked %v", when, r.status, r.body, want.blocked)
	}
}
