package metric

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"
)

// most is how many metrics one directive may name.
const most = 100

// directive and metadata are the `_aws` member of a line, as CloudWatch's specification of
// the embedded metric format has it.
type directive struct {
	Namespace  string
	Dimensions [][]string
	Metrics    []named
}

type named struct {
	Name Name
	Unit Unit
}

type metadata struct {
	Timestamp         int64 // milliseconds since the epoch
	CloudWatchMetrics []directive
}

// line is one line in the making: its members, and its directives.
type line struct {
	members    map[string]any
	directives []directive
}

// Lines writes data as lines of CloudWatch's embedded metric format, without line ends. A
// line is one JSON object in which a metric and a dimension have one value each; data that
// disagree on one go to different lines. What is not finite is left out, since CloudWatch
// would refuse the whole line.
func Lines(at time.Time, data []Datum) [][]byte {
	var lines []*line
	for _, d := range data {
		if math.IsNaN(d.Value) || math.IsInf(d.Value, 0) {
			continue
		}
		i := slices.IndexFunc(lines, func(l *line) bool { return l.takes(d) })
		if i < 0 {
			lines = append(lines, &line{members: map[string]any{}})
			i = len(lines) - 1
		}
		lines[i].add(d)
	}
	out := make([][]byte, 0, len(lines))
	for _, l := range lines {
		l.members["_aws"] = metadata{at.UnixMilli(), l.directives}
		b, err := json.Marshal(l.members)
		if err != nil {
			continue // strings and finite numbers always encode
		}
		out = append(out, b)
	}
	return out
}

func (l *line) takes(d Datum) bool {
	if _, taken := l.members[string(d.Name)]; taken {
		return false
	}
	for _, each := range d.Dimensions {
		if held, there := l.members[each.Name]; there && held != each.Value {
			return false
		}
	}
	return true
}

func (l *line) add(d Datum) {
	names := []string{}
	for _, each := range d.Dimensions {
		l.members[each.Name] = each.Value
		names = append(names, each.Name)
	}
	l.members[string(d.Name)] = d.Value
	m := named{d.Name, Of(d.Name).Unit}
	key := strings.Join(names, "\x00")
	for i := range l.directives {
		into := &l.directives[i]
		if strings.Join(into.Dimensions[0], "\x00") == key && len(into.Metrics) < most {
			into.Metrics = append(into.Metrics, m)
			return
		}
	}
	l.directives = append(l.directives, directive{Namespace, [][]string{names}, []named{m}})
}
