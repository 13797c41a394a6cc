package metric_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/account"
	"holdfast/internal/metric"
)

// emf is a line as a reader of the format sees it.
type emf struct {
	AWS struct {
		Timestamp         int64
		CloudWatchMetrics []struct {
			Namespace  string
			Dimensions [][]string
			Metrics    []struct{ Name, Unit string }
		}
	} `json:"_aws"`
}

// extracted reads lines as CloudWatch does, by its specification of the format: the
// metadata names members at the top of the line, of which metrics are numbers and
// dimensions texts. It returns what values returns.
func extracted(t *testing.T, lines [][]byte) map[string]float64 {
	t.Helper()
	var data []metric.Datum
	for _, line := range lines {
		var head emf
		var members map[string]any
		if err := json.Unmarshal(line, &head); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(line, &members); err != nil {
			t.Fatal(err)
		}
		if head.AWS.Timestamp != noon.UnixMilli() || len(head.AWS.CloudWatchMetrics) == 0 || len(line) > 256<<10 {
			t.Errorf("got %s, want a time in milliseconds, directives, at most 256 KiB", line)
		}
		for _, d := range head.AWS.CloudWatchMetrics {
			if d.Namespace != "Holdfast" || len(d.Dimensions) != 1 || len(d.Dimensions[0]) > 30 || len(d.Metrics) == 0 || len(d.Metrics) > 100 {
				t.Errorf("got directive %+v, want the namespace, one set of at most 30 dimensions, 1 to 100 metrics", d)
			}
			for _, m := range d.Metrics {
				value, number := members[m.Name].(float64)
				if !number || m.Unit == "" {
					t.Errorf("metric %s in %s: want a number and a unit", m.Name, line)
				}
				datum := metric.Datum{Name: metric.Name(m.Name), Value: value}
				for _, name := range d.Dimensions[0] {
					text, ok := members[name].(string)
					if !ok || text == "" || len(text) > 1024 {
						t.Errorf("dimension %s in %s: want a text", name, line)
					}
					datum.Dimensions = append(datum.Dimensions, metric.Dimension{Name: name, Value: text})
				}
				data = append(data, datum)
			}
		}
	}
	return values(t, data)
}

func TestLines(t *testing.T) {
	data := metric.OfRequest(metric.Request{
		Provider: account.OpenAI, Account: "tansy", Outcome: "served", Pin: "new", Source: "session",
		Rejections: []account.RejectionKind{account.WindowSpent, account.Bare}, Added: 1, Prompt: 4, CacheRead: 1,
	})
	lines := metric.Lines(noon, data)
	if len(lines) != 2 { // the kinds of the two rejections disagree
		t.Errorf("got %d lines, want 2", len(lines))
	}
	if diff := cmp.Diff(values(t, data), extracted(t, lines)); diff != "" {
		t.Errorf("(-given +read)\n%s", diff)
	}
}

func TestLinesWithoutDimensions(t *testing.T) {
	lines := metric.Lines(noon, []metric.Datum{{Name: metric.PollerRounds, Value: 1}})
	const want = `{"PollerRounds":1,"_aws":{"Timestamp":1804161600000,"CloudWatchMetrics":[{"Namespace":"Holdfast","Dimensions":[[]],"Metrics":[{"Name":"PollerRounds","Unit":"Count"}]}]}}`
	if len(lines) != 1 || string(lines[0]) != want {
		t.Errorf("got %s, want %s", lines, want)
	}
}

func TestLinesLeaveOutWhatIsNoNumber(t *testing.T) {
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if lines := metric.Lines(noon, []metric.Datum{{Name: metric.PollerRounds, Value: v}}); len(lines) != 0 {
			t.Errorf("%v: got %s, want nothing", v, lines)
		}
	}
}
