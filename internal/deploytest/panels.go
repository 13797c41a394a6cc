package deploytest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
)

// Panel is a panel of a dashboard that shows series.
type Panel struct {
	Title string
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
	Expression, Stat string
}

// Panels reads a dashboard's body by "Dashboard body structure and syntax" of CloudWatch's
// API reference.
func Panels(body string) ([]Panel, error) {
	var d struct {
		Widgets []struct {
			Type       string
			Properties struct {
				Title, Region, Stat, View string
				Period                    int
				Metrics                   [][]json.RawMessage
			}
		}
	}
	if err := json.Unmarshal([]byte(body), &d); err != nil {
		return nil, fmt.Errorf("read the dashboard: %w", err)
	}
	var panels []Panel
	for _, w := range d.Widgets {
		p := Panel{Title: w.Properties.Title, Period: w.Properties.Period, Statistic: w.Properties.Stat}
		if w.Type != "metric" || w.Properties.Region == "" || p.Title == "" {
			return nil, fmt.Errorf("panel %q of type %q: want a title, a region and metrics", p.Title, w.Type)
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
	if o.Expression != "" {
		shown, err = search(o.Expression)
		return shown, nil, err
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
	searched = regexp.MustCompile(`^SEARCH\('\{([^{}]+)\} MetricName="([A-Za-z]+)"', '(Minimum|Maximum|Sum|Average|SampleCount)', [0-9]+\)$`)
	word     = regexp.MustCompile(`[^,]+`)
)

// search reads a search for the series of one metric with one set of dimensions.
func search(expression string) (Shown, error) {
	found := searched.FindStringSubmatch(expression)
	if found == nil {
		return Shown{}, fmt.Errorf("expression %s is not a search that is known here", expression)
	}
	schema := word.FindAllString(found[1], -1)
	shown := Shown{Series{Namespace: schema[0], Metric: found[2]}, found[3]}
	for _, name := range schema[1:] {
		shown.Dimensions = append(shown.Dimensions, Dimension{Name: name})
	}
	sorted(shown.Dimensions)
	return shown, nil
}
