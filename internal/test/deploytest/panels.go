package deploytest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
)

// Panel is a panel of a dashboard: it shows series, or what a query finds in a log.
type Panel struct {
	Title string
	// Query is a panel's of a log, in the language of CloudWatch Logs Insights; empty for a
	// panel of series.
	Query string
	// Period is in seconds, Statistic the one of series that name none of their own.
	Period    int
	Statistic string
	Shows     []Shown
}

// Shown is a series with the statistic that is shown of it.
type Shown struct {
	Series
	Statistic string
}

// options stand at the end of a series in a dashboard.
type options struct {
	Stat string
}

// Panels reads a dashboard's body by "Dashboard body structure and syntax" of CloudWatch's
// API reference.
func Panels(body string) ([]Panel, error) {
	var d struct {
		Widgets []struct {
			Type       string
			Properties struct {
				Title, Region, Stat, View, Query string
				Period                           int
				Metrics                          [][]json.RawMessage
			}
		}
	}
	if err := json.Unmarshal([]byte(body), &d); err != nil {
		return nil, fmt.Errorf("read the dashboard: %w", err)
	}
	var panels []Panel
	for _, w := range d.Widgets {
		p := Panel{Title: w.Properties.Title, Query: w.Properties.Query, Period: w.Properties.Period, Statistic: w.Properties.Stat}
		if w.Properties.Region == "" || p.Title == "" || (w.Type == "log") != (p.Query != "") || (w.Type != "log" && w.Type != "metric") {
			return nil, fmt.Errorf("panel %q of type %q: want a title, a region, and metrics or a query", p.Title, w.Type)
		}
		if p.Query != "" {
			panels = append(panels, p)
			continue
		}
		var before []string
		for i, row := range w.Properties.Metrics {
			shown, words, err := series(row, before)
			if err != nil {
				return nil, fmt.Errorf("panel %q, row %d: %w", p.Title, i+1, err)
			}
			if shown.Statistic == "" {
				shown.Statistic = p.Statistic
			}
			if words != nil {
				before = words
			}
			p.Shows = append(p.Shows, shown)
		}
		if len(p.Shows) == 0 {
			return nil, fmt.Errorf("panel %q shows nothing", p.Title)
		}
		panels = append(panels, p)
	}
	return panels, nil
}

// series reads a row. before are the words of the row before that named a metric.
func series(row []json.RawMessage, before []string) (shown Shown, words []string, err error) {
	var o options
	for i, raw := range row {
		var word string
		if json.Unmarshal(raw, &word) == nil {
			words = append(words, word)
			continue
		}
		if err := json.Unmarshal(raw, &o); err != nil || i != len(row)-1 {
			return Shown{}, nil, fmt.Errorf("%s stands where words of a metric are to", raw)
		}
	}
	if words, err = written(words, before); err != nil {
		return Shown{}, nil, err
	}
	shown.Namespace, shown.Metric, shown.Statistic = words[0], words[1], o.Stat
	for i := 2; i < len(words); i += 2 {
		shown.Dimensions = append(shown.Dimensions, Dimension{words[i], words[i+1]})
	}
	sorted(shown.Dimensions)
	return shown, words, nil
}

// written writes a row's shorthands out: "." is the word in that place of the row before,
// "..." as many of that row's first words as make this one as long.
func written(words, before []string) ([]string, error) {
	if len(words) > 0 && words[0] == "..." {
		missing := len(before) - (len(words) - 1)
		if missing < 1 {
			return nil, fmt.Errorf("%q follows a row of %d words", words, len(before))
		}
		words = append(slices.Clone(before[:missing]), words[1:]...)
	}
	for i, word := range words {
		if word != "." {
			continue
		}
		if i >= len(before) {
			return nil, fmt.Errorf("%q follows a row of %d words", words, len(before))
		}
		words[i] = before[i]
	}
	if len(words) < 2 || len(words)%2 != 0 || slices.Contains(words, "") {
		return nil, fmt.Errorf("%q is not a namespace, a metric, and names and values of dimensions", words)
	}
	return words, nil
}

var (
	source    = regexp.MustCompile(`^SOURCE '([^']+)' \| `)
	quotes    = regexp.MustCompile(`'[^']*'`)
	named     = regexp.MustCompile(`\bas ([a-z_0-9]+)`)
	unnesting = regexp.MustCompile(`unnest line\.figures\.([a-z]+) into each\b`)
	ofEach    = regexp.MustCompile(`\beach\.([a-z_]+)`)
	field     = regexp.MustCompile(`(?:\b[a-zA-Z_]|@)[a-zA-Z_0-9.@]*(\()?`)
)

// keywords are the words of a query that name no field.
var keywords = []string{"filter", "fields", "stats", "sort", "by", "as", "and", "or", "desc", "asc", "unnest", "into", "each", "line", "bin"}

// Asked is what a query asks a log for.
type Asked struct {
	// Group is the log group.
	Group string
	// Fields are the members of a line that it reads, in order and each once.
	Fields []string
	// List is the list of the figures of a round that it goes through, and Of the members of
	// its entries that it reads; both empty for a query that reads lines as they are.
	List string
	Of   []string
}

// Ask reads a query, as far as this repository's dashboard uses the language: fields of
// lines, or one list of a line's figures.
func Ask(query string) (Asked, error) {
	group := source.FindStringSubmatch(query)
	if group == nil {
		return Asked{}, fmt.Errorf("query %q does not begin with its log group", query)
	}
	a := Asked{Group: group[1]}
	rest := query[len(group[0]):]
	if list := unnesting.FindStringSubmatch(rest); list != nil {
		a.List = list[1]
	}
	for _, found := range ofEach.FindAllStringSubmatch(rest, -1) {
		if !slices.Contains(a.Of, found[1]) {
			a.Of = append(a.Of, found[1])
		}
	}
	if (a.List == "") != (len(a.Of) == 0) {
		return Asked{}, fmt.Errorf("query %q reads entries of no list, or a list without its entries", query)
	}
	plain := ofEach.ReplaceAllString(unnesting.ReplaceAllString(quotes.ReplaceAllString(rest, ""), ""), "")
	known := slices.Clone(keywords)
	for _, found := range named.FindAllStringSubmatch(plain, -1) {
		known = append(known, found[1])
	}
	for _, word := range field.FindAllString(plain, -1) {
		if word[len(word)-1] == '(' || word[0] == '@' || slices.Contains(known, word) || slices.Contains(a.Fields, word) {
			continue
		}
		a.Fields = append(a.Fields, word)
	}
	return a, nil
}
