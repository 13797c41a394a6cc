package status

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"holdfast/internal/core/usage"
	"holdfast/internal/store"
)

// By is what usage is summed by.
type By string

// What usage is summed by. Hours are told of the last week alone; before that it is days.
const (
	ByAccount By = "account"
	ByKey     By = "key"
	ByAgent   By = "agent"
	ByModel   By = "model"
	ByDay     By = "day"
	ByHour    By = "hour"
)

// Bys are all of them, in the order in which they are listed.
var Bys = []By{ByAccount, ByKey, ByAgent, ByModel, ByDay, ByHour}

// Usage is what was used, with its sum.
type Usage struct {
	Since time.Time `json:"since"`
	At    time.Time `json:"at"`
	By    By        `json:"by"`
	Rows  []Used    `json:"rows"`
	Total Used      `json:"total"`
}

// Used is one row. Tokens of a prompt are counted once: as input, as read from a cache or as
// written to one. Reasoning is a part of the output.
type Used struct {
	Name string `json:"name"`
	usage.Counts
	// Cost is what the tokens would have cost at list prices, in US dollars; null where the
	// price of one of the models is not known. Unpriced then names those models.
	Cost     *float64 `json:"cost_usd"`
	Unpriced []string `json:"unpriced_models,omitempty"`
	// CacheShare is the part of the prompts' tokens that a cache gave; null without any.
	CacheShare *float64 `json:"cache_share"`

	priced float64 // the cost of those models whose price is known
}

// UsageOf sums what was used. own are the owner's prices.
func UsageOf(spans []store.UsageSpan, by By, own []usage.Price, since, at time.Time) Usage {
	u := Usage{Since: second(since), At: second(at), By: by, Rows: []Used{}}
	sums := map[string]*sum{}
	total := &sum{}
	for _, span := range spans {
		for who, c := range span.Rows {
			name := nameOf(by, span, who)
			if sums[name] == nil {
				sums[name] = &sum{}
			}
			sums[name].add(who.Model, c, own)
			total.add(who.Model, c, own)
		}
	}
	for name, s := range sums {
		u.Rows = append(u.Rows, s.used(name))
	}
	slices.SortFunc(u.Rows, func(a, b Used) int {
		if by == ByDay || by == ByHour {
			return cmp.Compare(a.Name, b.Name)
		}
		return cmp.Or(cmp.Compare(tokens(b.Counts), tokens(a.Counts)), cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Name, b.Name))
	})
	u.Total = total.used("total")
	return u
}

func nameOf(by By, span store.UsageSpan, who usage.Who) string {
	switch by {
	case ByAccount:
		if who.Account == "" {
			return "(no account)"
		}
		return who.Account
	case ByKey:
		return who.Key
	case ByAgent:
		return who.Agent
	case ByModel:
		return who.Model
	case ByHour:
		if span.Length == time.Hour {
			return span.From.Format("2006-01-02 15:00Z")
		}
	case ByDay:
	}
	return span.From.Format(time.DateOnly)
}

func tokens(c usage.Counts) int64 { return c.Input + c.CacheRead + c.CacheWrite + c.Output }

// sum is counts with their cost.
type sum struct {
	counts   usage.Counts
	cost     float64
	unpriced map[string]bool
}

func (s *sum) add(model string, c usage.Counts, own []usage.Price) {
	s.counts.Add(c)
	price, known := usage.PriceOf(model, own)
	switch {
	case known:
		s.cost += price.Cost(c)
	case tokens(c) > 0:
		if s.unpriced == nil {
			s.unpriced = map[string]bool{}
		}
		s.unpriced[model] = true
	}
}

func (s *sum) used(name string) Used {
	u := Used{Name: name, Counts: s.counts, priced: s.cost}
	for model := range s.unpriced {
		u.Unpriced = append(u.Unpriced, model)
	}
	slices.Sort(u.Unpriced)
	if len(u.Unpriced) == 0 {
		u.Cost = &s.cost
	}
	if share, known := s.counts.CacheShare(); known {
		u.CacheShare = &share
	}
	return u
}

// WriteText writes the usage for a terminal.
func (u Usage) WriteText(w io.Writer) error {
	if len(u.Rows) == 0 {
		_, err := fmt.Fprintf(w, "Nothing was used since %s.\n", u.Since.Format(minute))
		return err
	}
	widest := len(u.By)
	for _, row := range append(slices.Clone(u.Rows), u.Total) {
		widest = max(widest, utf8.RuneCountInString(row.Name))
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "%-*s\tREQUESTS\tREFUSED\tMOVED\tINPUT\tCACHED\tWRITTEN\tOUTPUT\tCOST\t\n", widest, strings.ToUpper(string(u.By)))
	for _, row := range append(slices.Clone(u.Rows), u.Total) {
		fmt.Fprintf(table, "%-*s\t%d\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t\n", widest, row.Name, row.Requests, row.Refused, row.Moved,
			short(row.Input), short(row.CacheRead), short(row.CacheWrite), short(row.Output), row.costText())
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nSince %s. Costs are in US dollars, at list prices of %s.\n", u.Since.Format(minute), usage.PricesOf)
	if u.Total.CacheShare != nil {
		fmt.Fprintf(w, "Caches gave %s of the prompts' tokens.\n", percent(*u.Total.CacheShare))
	}
	if u.Total.Reread > 0 {
		fmt.Fprintf(w, "Moves had %s tokens read again.\n", short(u.Total.Reread))
	}
	if u.Total.Reasoning > 0 {
		fmt.Fprintf(w, "Reasoning was %s of the output.\n", short(u.Total.Reasoning))
	}
	if len(u.Total.Unpriced) > 0 {
		fmt.Fprintf(w, "No price is known of %s. Set one: holdfast settings set prices MODEL=IN/CACHED/WRITTEN/OUT\n", strings.Join(u.Total.Unpriced, ", "))
	}
	return nil
}

func (u Used) costText() string {
	switch {
	case u.Cost != nil:
		return fmt.Sprintf("%.2f", *u.Cost)
	case u.priced > 0:
		return fmt.Sprintf("%.2f+", u.priced) // and what has no known price
	}
	return "unknown"
}

// short writes a count in at most five characters.
func short(n int64) string {
	switch {
	case n < 10_000:
		return fmt.Sprint(n)
	case n < 1_000_000:
		return fmt.Sprintf("%.0fk", float64(n)/1e3)
	case n < 10_000_000_000:
		return fmt.Sprintf("%.1fM", float64(n)/1e6)
	}
	return fmt.Sprintf("%.0fG", float64(n)/1e9)
}
