package deploytest

import (
	"fmt"
	"slices"
	"strings"

	"holdfast/internal/core/account"
	"holdfast/internal/core/metric"
	"holdfast/internal/test/alarmstate"
)

// Reader is an alarm or a panel, with one series that it reads.
type Reader struct {
	// Name is the alarm's, or the panel's title.
	Name string
	// Alarm: it is an alarm.
	Alarm bool
	Series
}

// OfAlarm is an alarm as a reader.
func OfAlarm(d alarmstate.Definition) Reader {
	r := Reader{Name: "alarm " + d.Name, Alarm: true, Series: Series{Namespace: d.Namespace, Metric: d.Metric}}
	for name, value := range d.Dimensions {
		r.Dimensions = append(r.Dimensions, Dimension{name, value})
	}
	sorted(r.Dimensions)
	return r
}

// OfPanel is a panel as readers.
func OfPanel(p Panel) (all []Reader) {
	for _, shown := range p.Shows {
		all = append(all, Reader{Name: "panel " + p.Title, Series: shown.Series})
	}
	return all
}

// Mismatches says in sentences which metric, with which dimensions, no alarm reads, and which
// reader waits for what nobody emits. Metrics of AWS's own are not looked at. Where readers
// name providers, all of them are to be read.
func Mismatches(definitions []metric.Definition, readers []Reader) (wrong []string) {
	emitted := map[string]bool{}
	read := map[string]bool{}
	providers := map[string]map[string]bool{} // who reads what of which provider
	for _, d := range definitions {
		for _, set := range d.Dimensions {
			emitted[shape(string(d.Name), set)] = true
		}
	}
	for _, r := range readers {
		if strings.HasPrefix(r.Namespace, "AWS/") {
			continue
		}
		var names []string
		for _, d := range r.Dimensions {
			names = append(names, d.Name)
			if d.Name == metric.Provider && d.Value != "" {
				if !slices.Contains(account.Providers, account.Provider(d.Value)) {
					wrong = append(wrong, fmt.Sprintf("%s reads %s: there is no such provider", r.Name, r.Series))
				}
				kind, _, _ := strings.Cut(r.Name, d.Value) // the alarms of a kind differ in this
				key := kind + " reads " + r.Metric
				if providers[key] == nil {
					providers[key] = map[string]bool{}
				}
				providers[key][d.Value] = true
			}
		}
		key := shape(r.Metric, names)
		if r.Namespace != metric.Namespace || !emitted[key] {
			wrong = append(wrong, fmt.Sprintf("%s reads %s: nobody emits that", r.Name, r.Series))
		}
		read[key] = read[key] || r.Alarm
	}
	for key := range emitted {
		if !read[key] {
			wrong = append(wrong, fmt.Sprintf("no alarm reads %s", key))
		}
	}
	for key, of := range providers {
		if len(of) != len(account.Providers) {
			wrong = append(wrong, fmt.Sprintf("%s of %d providers only, of %d", key, len(of), len(account.Providers)))
		}
	}
	slices.Sort(wrong)
	return wrong
}

func shape(name string, dimensions []string) string {
	return name + "{" + strings.Join(slices.Sorted(slices.Values(dimensions)), ",") + "}"
}
