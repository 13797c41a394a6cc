package metric_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/core/metric"
	"holdfast/internal/test/deploytest"
)

// extracted reads lines as CloudWatch does. It returns what values returns.
func extracted(t *testing.T, lines [][]byte) map[string]float64 {
	t.Helper()
	var data []metric.Datum
	for _, line := range lines {
		more, at, measured, err := deploytest.Extract(line)
		if err != nil || !measured || !at.Equal(noon) {
			t.Errorf("%s: got time %v, measured %v, error %v, want data of %v", line, at, measured, err, noon)
		}
		data = append(data, more...)
	}
	return values(t, data)
}

func TestLines(t *testing.T) {
	of := func(name metric.Name, dimension, value string) metric.Datum {
		return metric.Datum{Name: name, Value: 1, Dimensions: []metric.Dimension{{Name: metric.Table, Value: "t"}, {Name: dimension, Value: value}}}
	}
	data := []metric.Datum{
		of(metric.NeedsOwner, metric.Account, "tansy"), of(metric.NeedsOwner, metric.Account, "juniper"),
		of(metric.Exhausted, metric.Provider, "openai"), of(metric.ReadingAge, metric.Provider, "openai"),
	}
	lines := metric.Lines(noon, data)
	if len(lines) != 2 { // the two accounts disagree, and the rest fits to either
		t.Errorf("got %d lines, want 2", len(lines))
	}
	if diff := cmp.Diff(values(t, data), extracted(t, lines)); diff != "" {
		t.Errorf("(-given +read)\n%s", diff)
	}
}

func TestLine(t *testing.T) {
	lines := metric.Lines(noon, metric.OfRequest(metric.Request{Table: "t", StoreUnavailable: true}))
	const want = `{"StoreUnavailable":1,"Table":"t","_aws":{"Timestamp":1804161600000,"CloudWatchMetrics":[{"Namespace":"Holdfast","Dimensions":[["Table"]],"Metrics":[{"Name":"StoreUnavailable","Unit":"Count"}]}]}}`
	if len(lines) != 1 || string(lines[0]) != want {
		t.Errorf("got %s, want %s", lines, want)
	}
}

func TestLinesLeaveOutWhatIsNoNumber(t *testing.T) {
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if lines := metric.Lines(noon, []metric.Datum{{Name: metric.StoreUnavailable, Value: v}}); len(lines) != 0 {
			t.Errorf("%v: got %s, want nothing", v, lines)
		}
	}
}
