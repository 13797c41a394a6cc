package deploytest_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/account"
	"holdfast/internal/alarm"
	"holdfast/internal/alarmstate"
	"holdfast/internal/deploytest"
	"holdfast/internal/metric"
)

// given are the parameters of infra's templates, as a stack gives them.
var given = map[string]string{
	"Prefix": "holdfast", "TopicArn": "arn:aws:sns:us-east-1:000000000000:holdfast", "TableName": "holdfast-Table-X", "Name": "holdfast",
	"AWS::Region": "us-east-1",
}

func infra(t *testing.T, name string) []byte {
	t.Helper()
	body, err := os.ReadFile("../../infra/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// readers are everybody who reads a metric.
func readers(t *testing.T) (all []deploytest.Reader) {
	t.Helper()
	alarms, err := deploytest.Alarms(infra(t, "alarms.yaml"), given)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range alarms {
		all = append(all, deploytest.OfAlarm(a))
	}
	for _, a := range alarm.Of("holdfast-Table-X", account.Account{Name: "juniper", Provider: account.OpenAI, Kind: account.Subscription}) {
		all = append(all, deploytest.Reader{Name: "alarm " + a.Name, Series: deploytest.Series{
			Namespace: metric.Namespace, Metric: string(a.Metric), Dimensions: []deploytest.Dimension{{Name: metric.Account, Value: a.Account}},
		}})
	}
	body, err := deploytest.Dashboard(infra(t, "dashboard.yaml"), given)
	if err != nil {
		t.Fatal(err)
	}
	panels, err := deploytest.Panels(body)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range panels {
		all = append(all, deploytest.OfPanel(p)...)
	}
	return all
}

// Every metric costs, and so does not noticing what no alarm and no panel shows; an alarm
// on a metric that nobody emits never fires.
func TestEveryMetricHasAReaderAndEveryReaderAMetric(t *testing.T) {
	for _, wrong := range deploytest.Mismatches(metric.Definitions, readers(t)) {
		t.Error(wrong)
	}
}

// Without one of its readers, or with one more that is wrong, it would say so.
func TestMismatches(t *testing.T) {
	all := readers(t)
	without := func(drop func(deploytest.Reader) bool) []deploytest.Reader {
		return slices.DeleteFunc(slices.Clone(all), drop)
	}
	with := func(metricName string, dimensions ...deploytest.Dimension) []deploytest.Reader {
		return append(slices.Clone(all), deploytest.Reader{Name: "panel X", Series: deploytest.Series{Namespace: "Holdfast", Metric: metricName, Dimensions: dimensions}})
	}
	for _, c := range []struct {
		name    string
		readers []deploytest.Reader
		want    []string
	}{
		{"a metric without a reader", without(func(r deploytest.Reader) bool { return r.Metric == "HoursToReset" }), []string{"nobody reads HoursToReset{Account,Window}"}},
		{
			"one of two sets of dimensions without a reader",
			without(func(r deploytest.Reader) bool { return r.Metric == "ReadingAge" && r.Dimensions[0].Name == "Account" }),
			[]string{"nobody reads ReadingAge{Account}"},
		},
		{"a metric that nobody emits", with("Exhaustion"), []string{"panel X reads Holdfast Exhaustion{}: nobody emits that"}},
		{"dimensions that nobody emits", with("Parked", deploytest.Dimension{Name: "Provider"}), []string{`panel X reads Holdfast Parked{Provider=""}: nobody emits that`}},
		{"no dimensions", with("Parked"), []string{`panel X reads Holdfast Parked{}: nobody emits that`}},
		{
			"a provider that there is not, and the others missing", with("Exhausted", deploytest.Dimension{Name: "Provider", Value: "grok"}),
			[]string{`panel X reads Exhausted of 1 providers only, of 3`, `panel X reads Holdfast Exhausted{Provider="grok"}: there is no such provider`},
		},
		{
			"an alarm for two providers only", without(func(r deploytest.Reader) bool { return r.Name == "alarm holdfast-blind-xai" }),
			[]string{"alarm holdfast-blind- reads ReadingAge of 2 providers only, of 3"},
		},
		{
			"another namespace", append(slices.Clone(all), deploytest.Reader{Name: "panel X", Series: deploytest.Series{Namespace: "holdfast", Metric: "PinsNew"}}),
			[]string{"panel X reads holdfast PinsNew{}: nobody emits that"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, deploytest.Mismatches(metric.Definitions, c.readers)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestAlarms(t *testing.T) {
	alarms, err := deploytest.Alarms(infra(t, "alarms.yaml"), given)
	if err != nil {
		t.Fatal(err)
	}
	want := alarmstate.Definition{
		Name: "holdfast-blind-xai", Namespace: "Holdfast", Metric: "ReadingAge", Dimensions: map[string]string{"Provider": "xai"}, Statistic: "Minimum",
		Period: time.Minute, Periods: 5, ToAlarm: 5, Comparison: alarmstate.Above, Threshold: 1200, Missing: alarmstate.Breaching,
		Actions: []string{given["TopicArn"]}, OKActions: []string{given["TopicArn"]},
	}
	if diff := cmp.Diff(want, alarms["BlindXAI"]); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for name, a := range alarms {
		if !cmp.Equal(a.Actions, want.Actions) || !cmp.Equal(a.OKActions, want.Actions) {
			t.Errorf("%s notifies %v and %v, want the topic", name, a.Actions, a.OKActions)
		}
		if _, err := a.Raised(time.Now(), nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhatIsNotUnderstoodIsAnError(t *testing.T) {
	for name, body := range map[string]string{
		"another resource": "Resources: {A: {Type: AWS::SNS::Topic}}",
		"another property": "Resources: {A: {Type: AWS::CloudWatch::Alarm, Properties: {AlarmDescription: x, Threshold: 1, ExtendedStatistic: p99}}}",
		"another function": "Resources:\n  A:\n    Type: AWS::CloudWatch::Alarm\n    Properties:\n      AlarmName: !Join [a, b]\n",
		"no threshold":     "Resources: {A: {Type: AWS::CloudWatch::Alarm, Properties: {AlarmDescription: x}}}",
		"no parameter":     "Resources:\n  A:\n    Type: AWS::CloudWatch::Alarm\n    Properties:\n      AlarmName: !Sub ${Other}-a\n",
		"no template":      "\t",
	} {
		if got, err := deploytest.Alarms([]byte(body), given); err == nil {
			t.Errorf("%s: got %v, want an error", name, got)
		}
	}
	if got, err := deploytest.Dashboard([]byte("Resources: {}"), given); err == nil {
		t.Errorf("no dashboard: got %q, want an error", got)
	}
}

// dashboard is one with a panel of the metrics.
func dashboard(metrics string) string {
	return `{"widgets":[{"type":"metric","properties":{"title":"T","region":"us-east-1","stat":"Sum","period":60,"metrics":` + metrics + `}}]}`
}

func TestPanels(t *testing.T) {
	const body = `[
		["Holdfast","ReadyAccounts","Provider","openai"],
		["...","xai",{"stat":"Minimum"}],
		[".","Exhausted",".","anthropic"],
		[{"expression":"SEARCH('{Holdfast,Window,Account} MetricName=\"Utilization\"', 'Maximum', 60)"}],
		["...","xai"],
		["Holdfast","PinsNew"],
		[".","PinsKept"]
	]`
	of := func(name, value string) []deploytest.Dimension {
		return []deploytest.Dimension{{Name: name, Value: value}}
	}
	series := func(name string, dimensions []deploytest.Dimension, statistic string) deploytest.Shown {
		return deploytest.Shown{Series: deploytest.Series{Namespace: "Holdfast", Metric: name, Dimensions: dimensions}, Statistic: statistic}
	}
	want := []deploytest.Panel{{Title: "T", Period: 60, Statistic: "Sum", Shows: []deploytest.Shown{
		series("ReadyAccounts", of("Provider", "openai"), "Sum"), series("ReadyAccounts", of("Provider", "xai"), "Minimum"),
		series("Exhausted", of("Provider", "anthropic"), "Sum"),
		series("Utilization", []deploytest.Dimension{{Name: "Account"}, {Name: "Window"}}, "Maximum"),
		series("Exhausted", of("Provider", "xai"), "Sum"), series("PinsNew", nil, "Sum"), series("PinsKept", nil, "Sum"),
	}}}
	got, err := deploytest.Panels(dashboard(body))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for name, bad := range map[string]string{
		"nothing above a dot":        `[[".","PinsNew"]]`,
		"nothing above three dots":   `[["...","xai"]]`,
		"more than above":            `[["Holdfast","PinsNew"],["...","a","b","c"]]`,
		"half a dimension":           `[["Holdfast","PinsNew","Provider"]]`,
		"an option in the middle":    `[["Holdfast",{"stat":"Sum"},"PinsNew"]]`,
		"nothing":                    `[]`,
		"another expression":         `[[{"expression":"SUM(METRICS())"}]]`,
		"a search of another form":   `[[{"expression":"SEARCH('Holdfast Utilization', 'Maximum', 60)"}]]`,
		"a search for a part":        `[[{"expression":"SEARCH('{Holdfast,Account} Parked', 'Maximum', 60)"}]]`,
		"no list":                    `{}`,
		"no dashboard at all, a tab": "\t",
	} {
		if got, err := deploytest.Panels(dashboard(bad)); err == nil {
			t.Errorf("%s: got %v, want an error", name, got)
		}
	}
}

// A chart of the wrong statistic shows the wrong thing without any error: gauges are not
// added up, counts are.
func TestPanelsShowEachMetricByAStatisticThatMakesSense(t *testing.T) {
	body, err := deploytest.Dashboard(infra(t, "dashboard.yaml"), given)
	if err != nil {
		t.Fatal(err)
	}
	panels, err := deploytest.Panels(body)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range panels {
		for _, shown := range p.Shows {
			d := metric.Of(metric.Name(shown.Metric))
			counted := d.From == metric.Gateway && d.Unit == metric.Count || d.Name == metric.PollerRounds
			if counted != (shown.Statistic == "Sum") {
				t.Errorf("panel %s shows the %s of %s", p.Title, shown.Statistic, shown.Metric)
			}
		}
	}
}

func TestExtract(t *testing.T) {
	at := time.Date(2027, 3, 4, 12, 0, 0, 0, time.UTC)
	line := func(edit func(string) string) []byte {
		return []byte(edit(`{"PinsNew":1,"Kind":"bare","Rejections":2,"_aws":{"Timestamp":1804161600000,"CloudWatchMetrics":[` +
			`{"Namespace":"Holdfast","Dimensions":[[]],"Metrics":[{"Name":"PinsNew","Unit":"Count"}]},` +
			`{"Namespace":"Holdfast","Dimensions":[["Kind"]],"Metrics":[{"Name":"Rejections","Unit":"Count"}]}]}}`))
	}
	data, when, measured, err := deploytest.Extract(line(func(s string) string { return s }))
	want := []metric.Datum{{Name: "PinsNew", Value: 1}, {Name: "Rejections", Value: 2, Dimensions: []metric.Dimension{{Name: "Kind", Value: "bare"}}}}
	if diff := cmp.Diff(want, data); diff != "" || !when.Equal(at) || !measured || err != nil {
		t.Errorf("got time %v, measured %v, error %v, (-want +got)\n%s", when, measured, err, diff)
	}
	for _, other := range []string{`START RequestId: 1`, `{"msg":"request"}`} {
		if _, _, measured, err := deploytest.Extract([]byte(other)); measured || err != nil {
			t.Errorf("%s: got measured %v, error %v, want neither", other, measured, err)
		}
	}
	for name, change := range map[string][2]string{
		"time in words":          {"1804161600000", `"noon"`},
		"no time":                {`"Timestamp":1804161600000,`, ""},
		"no directive":           {`"CloudWatchMetrics":[`, `"Others":[`},
		"another namespace":      {`"Holdfast"`, `"Other"`},
		"a metric that is text":  {`"PinsNew":1`, `"PinsNew":"1"`},
		"a metric that is not":   {`"PinsNew":1,`, ""},
		"a dimension that is no": {`"Kind":"bare",`, ""},
		"an empty dimension":     {`"bare"`, `""`},
		"no sets of dimensions":  {`[[]]`, `[]`},
		"another unit":           {`{"Name":"PinsNew","Unit":"Count"}`, `{"Name":"PinsNew","Unit":"Requests"}`},
		"not the metric's unit":  {`{"Name":"PinsNew","Unit":"Count"}`, `{"Name":"PinsNew","Unit":"Seconds"}`},
		"undefined dimensions":   {`[["Kind"]]`, `[[]]`},
	} {
		edit := func(s string) string { return strings.Replace(s, change[0], change[1], 1) }
		if data, _, measured, err := deploytest.Extract(line(edit)); !measured || err == nil {
			t.Errorf("%s: got %v, measured %v, want an error", name, data, measured)
		}
	}
}
