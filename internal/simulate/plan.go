package simulate

import (
	"fmt"
	"sync"
	"time"
)

const (
	// full is where a simulated window stops: at 95 % it still allows.
	full = 0.95
	// cacheLife is the prompt cache's default lifetime.
	cacheLife = 5 * time.Minute
	// maxPrefixes bounds the remembered prefixes of one account.
	maxPrefixes = 1000

	fiveHours = 5 * time.Hour
	week      = 7 * 24 * time.Hour
	// fiveHourTokens and weekTokens are a simulated plan's allowances. A Claude Code turn of
	// twelve thousand tokens shows as six tenths of a percent of five hours.
	fiveHourTokens = 2e6
	weekTokens     = 20e6
)

// plan is a simulated account's allowance and cache. Guarded by its plans' mutex.
type plan struct {
	name, organization string
	fiveHour, weekly   meter
	prefixes           map[string]prefix
}

// meter is one window: it fills with use and empties at its reset.
type meter struct {
	length      time.Duration
	allowance   float64 // in tokens
	utilization float64
	resetAt     time.Time
}

// prefix is what the simulated cache holds of one conversation.
type prefix struct {
	tokens int64
	until  time.Time
}

// plans are the accounts by credential, and the serial number of ids.
type plans struct {
	mu     sync.Mutex
	known  map[string]*plan
	serial int
}

// newPlans starts the two accounts at different levels and resets, so that there is
// something to choose between.
func newPlans(now time.Time) *plans {
	accounts := Accounts()
	start := func(name, organization string, five, weekly float64, fiveLeft, weekLeft time.Duration) *plan {
		return &plan{
			name: name, organization: organization, prefixes: map[string]prefix{},
			fiveHour: meter{fiveHours, fiveHourTokens, five, now.Add(fiveLeft).Truncate(time.Second)},
			weekly:   meter{week, weekTokens, weekly, now.Add(weekLeft).Truncate(time.Second)},
		}
	}
	return &plans{known: map[string]*plan{
		accounts[0].Credential: start(accounts[0].Name, "00000000-0000-4000-8000-000000000001",
			0.12, 0.31, 3*time.Hour+20*time.Minute, 52*time.Hour),
		accounts[1].Credential: start(accounts[1].Name, "00000000-0000-4000-8000-000000000002",
			0.04, 0.46, 4*time.Hour+10*time.Minute, 121*time.Hour),
	}}
}

// of returns the account of a credential, or nil.
func (p *plans) of(credential string) *plan { return p.known[credential] }

// number makes an id that no other answer has.
func (p *plans) number(prefix string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.serial++
	return fmt.Sprintf("%s%06d", prefix, p.serial)
}

// charge books a request of prompt and output tokens, and returns the answer's id, its
// usage, and the limits as its headers tell them: before this answer's own charge, which
// is how Anthropic's speak.
func (p *plans) charge(a *plan, now time.Time, conversation string, prompt, output int64) (string, Usage, Unified) {
	id := p.number("msg_simulated_")
	p.mu.Lock()
	defer p.mu.Unlock()
	a.fiveHour.renew(now)
	a.weekly.renew(now)
	limits := Unified{
		Status: "allowed", Claim: "five_hour", ResetAt: a.fiveHour.resetAt, FallbackPercentage: 0.5,
		Windows: []Window{
			{Name: "5h", Status: "allowed", Utilization: a.fiveHour.utilization, ResetAt: a.fiveHour.resetAt},
			{Name: "7d", Status: "allowed", Utilization: a.weekly.utilization, ResetAt: a.weekly.resetAt},
		},
		OverageStatus: "rejected", OverageDisabled: "org_level_disabled",
	}
	usage := a.use(now, conversation, prompt)
	usage.Output = output
	// A token read from the cache costs a tenth.
	cost := float64(usage.Input+usage.CacheWrite+output) + float64(usage.CacheRead)/10
	a.fiveHour.fill(cost)
	a.weekly.fill(cost)
	return id, usage, limits
}

// use splits a prompt by what the simulated cache holds of its conversation, and keeps
// the prompt there for the next turn. The last few tokens are never cached.
func (a *plan) use(now time.Time, conversation string, prompt int64) Usage {
	u := Usage{Input: min(prompt, 3)}
	if held, ok := a.prefixes[conversation]; ok && now.Before(held.until) {
		u.CacheRead = min(held.tokens, prompt-u.Input)
	}
	u.CacheWrite = prompt - u.Input - u.CacheRead
	if len(a.prefixes) >= maxPrefixes {
		clear(a.prefixes) // a demonstration that long may pay for its prompts again
	}
	a.prefixes[conversation] = prefix{tokens: prompt - u.Input, until: now.Add(cacheLife)}
	return u
}

// renew starts the window again once its reset has come.
func (m *meter) renew(now time.Time) {
	if now.Before(m.resetAt) {
		return
	}
	lapsed := now.Sub(m.resetAt)/m.length + 1
	m.resetAt, m.utilization = m.resetAt.Add(lapsed*m.length), 0
}

func (m *meter) fill(tokens float64) {
	m.utilization = min(full, m.utilization+tokens/m.allowance)
}
