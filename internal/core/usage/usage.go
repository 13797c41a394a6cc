package usage

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
)

// Who is what a row is of.
type Who struct {
	// Account is the account's id; it is empty for requests that no account served.
	Account string
	Model   string
	// Key is the client key's name.
	Key   string
	Agent string
}

// Other stands for what has no row of its own.
const Other = "other"

// MostRows bounds the rows of an hour, and of a day.
const MostRows = 1000

// Counts are what was counted. Tokens are counted once each: Input are those that no cache
// had, Output includes Reasoning.
type Counts struct {
	Requests int64 `json:"requests"`
	// Refused are requests that no account answered well.
	Refused int64 `json:"refused"`
	// Moved are requests with which a conversation moved to this account.
	Moved      int64 `json:"moved"`
	Input      int64 `json:"input_tokens"`
	CacheRead  int64 `json:"cache_read_tokens"`
	CacheWrite int64 `json:"cache_write_tokens"`
	Output     int64 `json:"output_tokens"`
	Reasoning  int64 `json:"reasoning_tokens"`
	// Reread are tokens of prompts that moved, as far as no cache had them.
	Reread int64 `json:"reread_tokens"`
}

// fields are the counts in the order in which records keep them.
func (c *Counts) fields() []*int64 {
	return []*int64{&c.Requests, &c.Refused, &c.Moved, &c.Input, &c.CacheRead, &c.CacheWrite, &c.Output, &c.Reasoning, &c.Reread}
}

// Add adds b to c.
func (c *Counts) Add(b Counts) {
	to, from := c.fields(), b.fields()
	for i := range to {
		*to[i] += *from[i]
	}
}

// CacheShare is the part of the prompts' tokens that a cache gave; false without any.
func (c Counts) CacheShare() (float64, bool) {
	prompt := c.Input + c.CacheRead + c.CacheWrite
	if prompt == 0 {
		return 0, false
	}
	return float64(c.CacheRead) / float64(prompt), true
}

// Rows are counts by who.
type Rows map[Who]Counts

// Add counts into the row of who, or into the one of all others where there are too many.
func (r Rows) Add(who Who, c Counts) {
	have, there := r[who]
	if !there && len(r) >= MostRows {
		// The account stays told: what it did is what its owner pays for.
		who = Who{who.Account, Other, Other, Other}
		have = r[who]
	}
	have.Add(c)
	r[who] = have
}

// AddAll counts all rows of b.
func (r Rows) AddAll(b Rows) {
	for _, who := range b.sorted() {
		r.Add(who, b[who])
	}
}

func (r Rows) sorted() []Who {
	all := make([]Who, 0, len(r))
	for who := range r {
		all = append(all, who)
	}
	slices.SortFunc(all, func(a, b Who) int {
		return cmp.Or(cmp.Compare(a.Account, b.Account), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.Model, b.Model))
	})
	return all
}

// mostName bounds a name that a client chose.
const mostName = 64

// Name makes a client's word fit for a row: printable, short, and never empty.
func Name(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.TrimSpace(text))
	if len(text) > mostName {
		text = strings.ToValidUTF8(text[:mostName], "")
	}
	if text == "" {
		return "unknown"
	}
	return text
}

// AgentOf names the program that sent a user agent, by the first product in it.
func AgentOf(userAgent string) string {
	product, _, _ := strings.Cut(strings.TrimSpace(userAgent), " ")
	product, _, _ = strings.Cut(product, "/")
	return Name(strings.ToLower(product))
}

// Batch is what one process counted in one hour and has not had kept before.
type Batch struct {
	Hour time.Time
	// Number rises with each batch of the process.
	Number int64
	Rows   Rows
}

// Tally counts in memory. The zero Tally is ready, and safe for use by several goroutines.
type Tally struct {
	mu     sync.Mutex
	hours  map[time.Time]Rows
	unkept []Batch // given out and not kept yet, the oldest first
	number int64
	given  time.Time // when batches were last given out
}

// Count counts one request as of an instant.
func (t *Tally) Count(at time.Time, who Who, c Counts) {
	hour := at.UTC().Truncate(time.Hour)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.hours == nil {
		t.hours = map[time.Time]Rows{}
	}
	if t.hours[hour] == nil {
		t.hours[hour] = Rows{}
	}
	t.hours[hour].Add(who, c)
}

// Due reports whether something was counted, and nothing was given out since an interval ago.
func (t *Tally) Due(now time.Time, every time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.hours)+len(t.unkept) == 0 {
		return false
	}
	since := now.Sub(t.given)
	return since >= every || since < 0
}

// mostUnkept bounds batches that a store which is away has not kept. Later counts wait
// in memory for those to be kept, by hour, and none is lost.
const mostUnkept = 16

// Give gives out what is to be kept: first what was given out before and was not kept, under
// its old number. Each batch is to be answered by Kept once it is kept.
func (t *Tally) Give(now time.Time) []Batch {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.given = now
	hours := make([]time.Time, 0, len(t.hours))
	for hour := range t.hours {
		hours = append(hours, hour)
	}
	slices.SortFunc(hours, time.Time.Compare)
	for _, hour := range hours {
		if len(t.unkept) >= mostUnkept {
			break
		}
		t.number++
		t.unkept = append(t.unkept, Batch{hour, t.number, t.hours[hour]})
		delete(t.hours, hour)
	}
	return slices.Clone(t.unkept)
}

// Kept forgets a batch that the store has.
func (t *Tally) Kept(number int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unkept = slices.DeleteFunc(t.unkept, func(b Batch) bool { return b.Number == number })
}
