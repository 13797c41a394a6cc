package deploytest_test

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/core/account"
	"holdfast/internal/core/alarm"
	"holdfast/internal/core/metric"
	"holdfast/internal/test/alarmstate"
	"holdfast/internal/test/deploytest"
)

// given are the parameters of infra's templates, as a stack gives them.
var given = map[string]string{
	"Prefix": "holdfast", "TopicArn": "arn:aws:sns:us-east-1:000000000000:holdfast", "TableName": "holdfast-Table-X", "Name": "holdfast",
	"AWS::Region": "us-east-1", "GatewayFunction": "holdfast-Gateway-X", "PollerFunction": "holdfast-Poller-X",
	"GatewayLog": "holdfast-GatewayLog-X", "PollerLog": "holdfast-PollerLog-X",
}

func infra(t *testing.T, name string) []byte {
	t.Helper()
	body, err := os.ReadFile("../../../infra/" + name)
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
	a := alarm.Of("holdfast-Table-X", account.Account{Name: "juniper", Provider: account.OpenAI, Kind: account.Subscription})
	all = append(all, deploytest.Reader{Name: "alarm " + a.Name, Alarm: true, Series: deploytest.Series{
		Namespace: metric.Namespace, Metric: string(a.Metric), Dimensions: []deploytest.Dimension{{Name: metric.Account, Value: a.Account}, {Name: metric.Table, Value: a.Table}},
	}})
	for _, p := range panels(t) {
		all = append(all, deploytest.OfPanel(p)...)
	}
	return all
}

func panels(t *testing.T) []deploytest.Panel {
	t.Helper()
	body, err := deploytest.Dashboard(infra(t, "dashboard.yaml"), given)
	if err != nil {
		t.Fatal(err)
	}
	all, err := deploytest.Panels(body)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Every metric costs, so that one without an alarm is to be a line of a log; an alarm on a
// metric that nobody emits never fires.
func TestEveryMetricHasAnAlarmAndEveryReaderAMetric(t *testing.T) {
	for _, wrong := range deploytest.Mismatches(metric.Definitions, readers(t)) {
		t.Error(wrong)
	}
}

// Without one of its readers, or with one more that is wrong, the check would fail.
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
		{"a metric without an alarm", without(func(r deploytest.Reader) bool { return r.Metric == "NeedsOwner" }), []string{"no alarm reads NeedsOwner{Account,Table}"}},
		{
			"a metric that a panel alone reads",
			append(without(func(r deploytest.Reader) bool { return r.Metric == "StoreUnavailable" }), deploytest.Reader{Name: "panel X", Series: deploytest.Series{Namespace: "Holdfast", Metric: "StoreUnavailable", Dimensions: []deploytest.Dimension{{Name: "Table"}}}}),
			[]string{"no alarm reads StoreUnavailable{Table}"},
		},
		{"a metric that nobody emits", with("Exhaustion"), []string{"panel X reads Holdfast Exhaustion{}: nobody emits that"}},
		{"dimensions that nobody emits", with("NeedsOwner", deploytest.Dimension{Name: "Provider"}), []string{`panel X reads Holdfast NeedsOwner{Provider=""}: nobody emits that`}},
		{"no dimensions", with("NeedsOwner"), []string{`panel X reads Holdfast NeedsOwner{}: nobody emits that`}},
		{
			"a provider that there is not, and the others missing", with("Exhausted", deploytest.Dimension{Name: "Provider", Value: "grok"}, deploytest.Dimension{Name: "Table"}),
			[]string{`panel X reads Exhausted of 1 providers only, of 3`, `panel X reads Holdfast Exhausted{Provider="grok",Table=""}: there is no such provider`},
		},
		{
			"an alarm for two providers only", without(func(r deploytest.Reader) bool { return r.Name == "alarm holdfast-blind-xai" }),
			[]string{"alarm holdfast-blind- reads ReadingAge of 2 providers only, of 3"},
		},
		{
			"another namespace", append(slices.Clone(all), deploytest.Reader{Name: "panel X", Series: deploytest.Series{Namespace: "holdfast", Metric: "StoreUnavailable"}}),
			[]string{"panel X reads holdfast StoreUnavailable{}: nobody emits that"},
		},
		{"a metric of AWS's own", append(slices.Clone(all), deploytest.Reader{Name: "panel X", Series: deploytest.Series{Namespace: "AWS/Lambda", Metric: "Duration"}}), nil},
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
		Name: "holdfast-blind-xai", Namespace: "Holdfast", Metric: "ReadingAge", Dimensions: map[string]string{"Table": "holdfast-Table-X", "Provider": "xai"}, Statistic: "Minimum",
		Period: time.Minute, Periods: 5, ToAlarm: 5, Comparison: alarmstate.Above, Threshold: metric.Blind.Seconds(), Missing: alarmstate.NotBreaching,
		Actions: []string{given["TopicArn"]},
	}
	if diff := cmp.Diff(want, alarms["BlindXAI"]); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for name, a := range alarms {
		// Only silence is bad in itself, and raised before anything has happened.
		silence := name == "PollerSilent"
		if !cmp.Equal(a.Actions, want.Actions) || a.OKActions != nil || a.Off != silence || (a.Missing == alarmstate.Breaching) != silence {
			t.Errorf("%s notifies %v and %v (off: %t, missing data %s), want the topic when it is raised", name, a.Actions, a.OKActions, a.Off, a.Missing)
		}
		if _, err := a.Raised(time.Now(), nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestMails: a stack in which nothing fails mails nobody, neither in its first hour nor in a
// month, and so does each new account. A poller that never runs is announced once an owner's
// command has noticed.
func TestMails(t *testing.T) {
	alarms, err := deploytest.Alarms(infra(t, "alarms.yaml"), given)
	if err != nil {
		t.Fatal(err)
	}
	a := alarm.Of("holdfast-Table-X", account.Account{Name: "juniper", Provider: account.OpenAI, Kind: account.Subscription})
	alarms["OfAnAccount"] = alarmstate.Definition{ // as package cloudwatch writes it
		Name: a.Name, Metric: string(a.Metric), Statistic: "Maximum", Period: alarm.Period * time.Second, Periods: alarm.Points, ToAlarm: alarm.Points,
		Comparison: alarmstate.AtLeast, Threshold: a.AtLeast, Missing: alarmstate.NotBreaching, Actions: []string{given["TopicArn"]},
	}
	begin := time.Date(2027, 3, 4, 10, 0, 0, 0, time.UTC)
	// invoked are the poller's invocations, one a minute from the second minute on.
	invoked := func(end time.Time) map[time.Time]float64 {
		points := map[time.Time]float64{}
		for at := begin.Add(2 * time.Minute); at.Before(end); at = at.Add(time.Minute) {
			points[at] = 1
		}
		return points
	}
	mails := func(end, on time.Time, of func(metricName string) map[time.Time]float64) (from []string) {
		for name, d := range alarms {
			at, err := d.Notices(begin, end, on, of(d.Metric))
			if err != nil {
				t.Fatal(err)
			}
			for range at {
				from = append(from, name)
			}
		}
		slices.Sort(from)
		return from
	}
	well := func(end time.Time) func(string) map[time.Time]float64 {
		points := invoked(end)
		return func(name string) map[time.Time]float64 {
			if name == "Invocations" {
				return points
			}
			return nil
		}
	}
	nothing := func(string) map[time.Time]float64 { return nil }
	hour := begin.Add(time.Hour)
	if got := mails(hour, begin.Add(2*time.Minute), well(hour)); got != nil {
		t.Errorf("a first hour in which nothing failed: got mails from %v, want none", got)
	}
	// The rules look back twenty minutes at most, so a day stands for a month of such days.
	if day := begin.Add(24 * time.Hour); mails(day, begin.Add(2*time.Minute), well(day)) != nil {
		t.Error("a day in which nothing failed: got mails, want none")
	}
	if got := mails(hour, time.Time{}, nothing); got != nil {
		t.Errorf("nobody has noticed yet that the poller never ran: got mails from %v", got)
	}
	// A command turns the alarm on and sets it back to "no data", from where it is raised anew.
	silent := alarms["PollerSilent"]
	silent.Off = false
	if got, err := silent.Notices(begin.Add(20*time.Minute), hour, time.Time{}, nil); err != nil || len(got) != 1 {
		t.Errorf("a poller that never ran, once that was noticed: got %v mails, %v, want one", got, err)
	}
	// A poller that stops after an hour.
	stopped := func(name string) map[time.Time]float64 { return well(hour)(name) }
	if got := mails(begin.Add(2*time.Hour), begin.Add(2*time.Minute), stopped); !slices.Equal(got, []string{"PollerSilent"}) {
		t.Errorf("a poller that stops: got mails from %v, want one from PollerSilent", got)
	}
	// Each other failure is heard once, and its end is not announced.
	for metricName, value := range map[string]float64{"Exhausted": 1, "ReadingAge": 1260, "StoreUnavailable": 2, "Errors": 1, "Throttles": 3, "NeedsOwner": metric.RenewalFailing} {
		failing := func(name string) map[time.Time]float64 {
			if name != metricName {
				return well(hour)(name)
			}
			points := map[time.Time]float64{}
			for at := begin.Add(20 * time.Minute); at.Before(begin.Add(40 * time.Minute)); at = at.Add(time.Minute) {
				points[at] = value
			}
			return points
		}
		heard := map[string]int{}
		for _, name := range mails(hour, begin.Add(2*time.Minute), failing) {
			heard[name]++
		}
		for name, d := range alarms {
			if want := d.Metric == metricName; (heard[name] == 1) != want || heard[name] > 1 {
				t.Errorf("%s fails for twenty minutes: got %d mails from %s", metricName, heard[name], name)
			}
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
		"an expression":              `[[{"expression":"SUM(METRICS())"}]]`,
		"no list":                    `{}`,
		"no dashboard at all, a tab": "\t",
	} {
		if got, err := deploytest.Panels(dashboard(bad)); err == nil {
			t.Errorf("%s: got %v, want an error", name, got)
		}
	}
}

// A panel of a log reads what the functions log: a field that is not there shows nothing,
// without any error. The members of figures are those of package metric.
func TestPanelsAskForWhatIsLogged(t *testing.T) {
	figures := map[string]reflect.Type{
		"providers": reflect.TypeFor[metric.ProviderFigures](), "accounts": reflect.TypeFor[metric.AccountFigures](), "windows": reflect.TypeFor[metric.WindowFigures](),
	}
	queries := 0
	for _, p := range panels(t) {
		if p.Query == "" {
			continue
		}
		queries++
		asked, err := deploytest.Ask(p.Query)
		if err != nil {
			t.Errorf("panel %s: %v", p.Title, err)
			continue
		}
		group := given["GatewayLog"]
		if asked.List != "" {
			group = given["PollerLog"]
			var members []string
			if of := figures[asked.List]; of != nil {
				for i := range of.NumField() {
					name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
					members = append(members, name)
				}
			}
			for _, name := range asked.Of {
				if !slices.Contains(members, name) {
					t.Errorf("panel %s asks entries of %q for %s, which they do not have", p.Title, asked.List, name)
				}
			}
		}
		if asked.Group != group {
			t.Errorf("panel %s asks the log group %s, want %s", p.Title, asked.Group, group)
		}
	}
	if queries < 8 {
		t.Errorf("got %d panels of logs only", queries)
	}
}

func TestAsk(t *testing.T) {
	got, err := deploytest.Ask("SOURCE 'g' | filter msg = 'a line' and ispresent(provider) | stats sum(in_tokens) / sum(out) as share by bin(5m) as five, account | sort share desc")
	want := deploytest.Asked{Group: "g", Fields: []string{"msg", "provider", "in_tokens", "out", "account"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("got error %v (-want +got)\n%s", err, diff)
	}
	got, err = deploytest.Ask("SOURCE 'g' | filter msg = 'fleet' | fields jsonParse(@message) as line | unnest line.figures.windows into each | stats latest(each.used) as u by each.account as account")
	want = deploytest.Asked{Group: "g", Fields: []string{"msg"}, List: "windows", Of: []string{"used", "account"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("got error %v (-want +got)\n%s", err, diff)
	}
	for _, bad := range []string{"filter msg = 'a'", "SOURCE 'g' | stats latest(each.used)", "SOURCE 'g' | unnest line.figures.windows into each | stats count(*)"} {
		if got, err := deploytest.Ask(bad); err == nil {
			t.Errorf("%s: got %+v, want an error", bad, got)
		}
	}
}

func TestExtract(t *testing.T) {
	at := time.Date(2027, 3, 4, 12, 0, 0, 0, time.UTC)
	line := func(edit func(string) string) []byte {
		return []byte(edit(`{"StoreUnavailable":1,"Table":"t","Account":"tansy","NeedsOwner":2,"_aws":{"Timestamp":1804161600000,"CloudWatchMetrics":[` +
			`{"Namespace":"Holdfast","Dimensions":[["Table"]],"Metrics":[{"Name":"StoreUnavailable","Unit":"Count"}]},` +
			`{"Namespace":"Holdfast","Dimensions":[["Table","Account"]],"Metrics":[{"Name":"NeedsOwner","Unit":"None"}]}]}}`))
	}
	data, when, measured, err := deploytest.Extract(line(func(s string) string { return s }))
	want := []metric.Datum{{Name: "StoreUnavailable", Value: 1, Dimensions: []metric.Dimension{{Name: "Table", Value: "t"}}}, {Name: "NeedsOwner", Value: 2, Dimensions: []metric.Dimension{{Name: "Table", Value: "t"}, {Name: "Account", Value: "tansy"}}}}
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
		"a metric that is text":  {`"StoreUnavailable":1`, `"StoreUnavailable":"1"`},
		"a metric that is not":   {`"StoreUnavailable":1,`, ""},
		"a dimension that is no": {`"Account":"tansy",`, ""},
		"an empty dimension":     {`"tansy"`, `""`},
		"no sets of dimensions":  {`[["Table"]]`, `[]`},
		"another unit":           {`{"Name":"StoreUnavailable","Unit":"Count"}`, `{"Name":"StoreUnavailable","Unit":"Requests"}`},
		"not the metric's unit":  {`{"Name":"StoreUnavailable","Unit":"Count"}`, `{"Name":"StoreUnavailable","Unit":"Seconds"}`},
		"undefined dimensions":   {`[["Table","Account"]]`, `[[]]`},
	} {
		edit := func(s string) string { return strings.Replace(s, change[0], change[1], 1) }
		if data, _, measured, err := deploytest.Extract(line(edit)); !measured || err == nil {
			t.Errorf("%s: got %v, measured %v, want an error", name, data, measured)
		}
	}
}
