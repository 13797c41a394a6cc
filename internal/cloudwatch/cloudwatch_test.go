package cloudwatch_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/google/go-cmp/cmp"

	"holdfast/internal/account"
	"holdfast/internal/awstest"
	"holdfast/internal/cloudwatch"
	"holdfast/internal/metric"
)

const (
	table = "holdfast-Table-X"
	topic = "arn:aws:sns:us-east-1:000000000000:holdfast"
)

func TestPut(t *testing.T) {
	cfg := awstest.Config(awstest.StartMiniStack(t, false))
	at := time.Now().Truncate(time.Minute)
	fleet := metric.Fleet{Now: at}
	data := metric.OfFleet(fleet)
	for len(data) <= 1000 { // more than one call takes
		data = append(data, metric.Datum{Name: metric.Serving, Value: 1, Dimensions: []metric.Dimension{
			{Name: metric.Provider, Value: "xai"}, {Name: metric.Account, Value: "bracken"},
		}})
	}
	if err := cloudwatch.New(cfg, table, topic).Put(t.Context(), at, data); err != nil {
		t.Fatal(err)
	}
	got, err := sdk.NewFromConfig(cfg).GetMetricStatistics(t.Context(), &sdk.GetMetricStatisticsInput{
		Namespace: aws.String("Holdfast"), MetricName: aws.String("ReadingAge"),
		Dimensions: []types.Dimension{{Name: aws.String("Provider"), Value: aws.String("anthropic")}},
		StartTime:  aws.Time(at.Add(-time.Minute)), EndTime: aws.Time(at.Add(time.Minute)), Period: aws.Int32(60),
		Statistics: []types.Statistic{types.StatisticSampleCount, types.StatisticMaximum},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Datapoints) != 1 || aws.ToFloat64(got.Datapoints[0].SampleCount) != 1 || aws.ToFloat64(got.Datapoints[0].Maximum) != 0 || got.Datapoints[0].Unit != types.StandardUnitSeconds {
		t.Errorf("got %+v, want one zero in seconds", got.Datapoints)
	}
}

func TestKeepAlarms(t *testing.T) {
	cfg := awstest.Config(awstest.StartMiniStack(t, false))
	ctx, client := t.Context(), sdk.NewFromConfig(cfg)
	login := account.Account{ID: "1", Name: "juniper", Provider: account.Anthropic, Kind: account.Subscription}
	key := account.Account{ID: "2", Name: "bracken", Provider: account.XAI, Kind: account.Key}
	own := &sdk.PutMetricAlarmInput{ // of the owner's, which nobody else may touch
		AlarmName: aws.String("mine"), Namespace: aws.String("Holdfast"), MetricName: aws.String("Parked"), Statistic: types.StatisticMaximum,
		Period: aws.Int32(60), EvaluationPeriods: aws.Int32(1), Threshold: aws.Float64(1),
		ComparisonOperator: types.ComparisonOperatorGreaterThanOrEqualToThreshold,
	}
	if _, err := client.PutMetricAlarm(ctx, own); err != nil {
		t.Fatal(err)
	}
	alarms := func() map[string]types.MetricAlarm {
		t.Helper()
		out, err := client.DescribeAlarms(ctx, &sdk.DescribeAlarmsInput{})
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]types.MetricAlarm{}
		for _, a := range out.MetricAlarms {
			all[aws.ToString(a.AlarmName)] = a
		}
		return all
	}
	names := func() map[string]bool {
		all := map[string]bool{}
		for name := range alarms() {
			all[name] = true
		}
		return all
	}
	w := cloudwatch.New(cfg, table, topic)
	keep := func(accounts ...account.Account) {
		t.Helper()
		if err := w.KeepAlarms(ctx, accounts); err != nil {
			t.Fatal(err)
		}
	}

	keep(login, key)
	if diff := cmp.Diff(map[string]bool{"mine": true, table + "-login-juniper-parked": true, table + "-login-juniper-renewal": true, table + "-login-bracken-parked": true}, names()); diff != "" {
		t.Fatalf("(-want +got)\n%s", diff)
	}
	a := alarms()[table+"-login-juniper-renewal"]
	if aws.ToString(a.TreatMissingData) != "notBreaching" || len(a.AlarmActions) != 1 || a.AlarmActions[0] != topic || aws.ToFloat64(a.Threshold) != 3 {
		t.Errorf("got %+v, want it to notify the topic at three failures", a)
	}
	before := aws.ToTime(a.AlarmConfigurationUpdatedTimestamp)
	keep(login, key)
	if after := aws.ToTime(alarms()[table+"-login-juniper-renewal"].AlarmConfigurationUpdatedTimestamp); !after.Equal(before) {
		t.Errorf("an alarm that was right was written again: %s, then %s", before, after)
	}

	if err := cloudwatch.New(cfg, table, "").KeepAlarms(ctx, []account.Account{login}); err != nil {
		t.Fatal(err)
	}
	if a := alarms()[table+"-login-juniper-renewal"]; len(a.AlarmActions) != 0 {
		t.Errorf("without a topic: got actions %v", a.AlarmActions)
	}
	if diff := cmp.Diff(map[string]bool{"mine": true, table + "-login-juniper-parked": true, table + "-login-juniper-renewal": true}, names()); diff != "" {
		t.Errorf("one account was removed (-want +got)\n%s", diff)
	}
	for range 2 { // also when there is none
		if err := w.RemoveAlarms(ctx, "juniper"); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(map[string]bool{"mine": true}, names()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
