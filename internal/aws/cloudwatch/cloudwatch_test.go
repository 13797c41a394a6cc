package cloudwatch_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/google/go-cmp/cmp"

	"holdfast/internal/aws/cloudwatch"
	"holdfast/internal/core/account"
	"holdfast/internal/test/awstest"
)

const (
	table = "holdfast-Table-X"
	topic = "arn:aws:sns:us-east-1:000000000000:holdfast"
)

func TestKeep(t *testing.T) {
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
	w, now := cloudwatch.New(cfg, table, topic, ""), time.Now()
	keep := func(accounts ...account.Account) {
		t.Helper()
		if err := w.Keep(ctx, now, accounts); err != nil {
			t.Fatal(err)
		}
	}
	const ofLogin, ofKey = table + "-login-juniper", table + "-login-bracken"
	has := func(when string, want ...string) {
		t.Helper()
		all := map[string]bool{"mine": true}
		for _, name := range want {
			all[name] = true
		}
		if diff := cmp.Diff(all, names()); diff != "" {
			t.Fatalf("%s (-want +got)\n%s", when, diff)
		}
	}

	keep(login, key)
	has("the first round", ofLogin, ofKey)
	a := alarms()[ofLogin]
	if aws.ToString(a.TreatMissingData) != "notBreaching" || len(a.AlarmActions) != 1 || a.AlarmActions[0] != topic || len(a.OKActions) != 0 ||
		aws.ToFloat64(a.Threshold) != 1 || aws.ToString(a.MetricName) != "NeedsOwner" {
		t.Errorf("got %+v, want it to notify the topic when the account needs its owner, and nobody when it no longer does", a)
	}
	before := aws.ToTime(a.AlarmConfigurationUpdatedTimestamp)
	now = now.Add(time.Hour)
	keep(login, key)
	if after := aws.ToTime(alarms()[ofLogin].AlarmConfigurationUpdatedTimestamp); !after.Equal(before) {
		t.Errorf("an alarm that was right was written again: %s, then %s", before, after)
	}

	remove := func(name string) {
		t.Helper()
		if _, err := client.DeleteAlarms(ctx, &sdk.DeleteAlarmsInput{AlarmNames: []string{name}}); err != nil {
			t.Fatal(err)
		}
	}
	remove(ofKey)
	now = now.Add(time.Hour - time.Nanosecond)
	keep(login, key)
	has("not an hour later: nobody looks", ofLogin)
	now = now.Add(time.Nanosecond)
	keep(login, key)
	has("an hour later", ofLogin, ofKey)
	keep(login)
	has("the accounts are others", ofLogin)

	if err := cloudwatch.New(cfg, table, "", "").Keep(ctx, now, []account.Account{login}); err != nil {
		t.Fatal(err)
	}
	if a := alarms()[ofLogin]; len(a.AlarmActions) != 0 {
		t.Errorf("without a topic: got actions %v", a.AlarmActions)
	}
	for range 2 { // also when none exists
		if err := w.RemoveAlarm(ctx, "juniper"); err != nil {
			t.Fatal(err)
		}
	}
	has("removed")
}

// A new stack's alarm about a silent poller is off. The first round turns it on; where no round
// comes within ten minutes, whoever looks then turns it on, and has the alarm evaluated anew.
func TestSilence(t *testing.T) {
	cfg := awstest.Config(awstest.StartMiniStack(t, false))
	ctx, client := t.Context(), sdk.NewFromConfig(cfg)
	const silence = "holdfast-poller-silent"
	deploy := func() {
		t.Helper()
		_, err := client.PutMetricAlarm(ctx, &sdk.PutMetricAlarmInput{
			AlarmName: aws.String(silence), Namespace: aws.String("AWS/Lambda"), MetricName: aws.String("Invocations"), Statistic: types.StatisticSum,
			Period: aws.Int32(60), EvaluationPeriods: aws.Int32(15), Threshold: aws.Float64(1), ActionsEnabled: aws.Bool(false), AlarmActions: []string{topic},
			ComparisonOperator: types.ComparisonOperatorLessThanThreshold, TreatMissingData: aws.String("breaching"),
		})
		if err == nil {
			_, err = client.SetAlarmState(ctx, &sdk.SetAlarmStateInput{AlarmName: aws.String(silence), StateValue: types.StateValueAlarm, StateReason: aws.String("no data")})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	is := func(when string, on bool, state types.StateValue) {
		t.Helper()
		out, err := client.DescribeAlarms(ctx, &sdk.DescribeAlarmsInput{AlarmNames: []string{silence}})
		if err != nil || len(out.MetricAlarms) != 1 {
			t.Fatalf("%s: got %+v, %v, want the alarm", when, out, err)
		}
		if a := out.MetricAlarms[0]; aws.ToBool(a.ActionsEnabled) != on || a.StateValue != state {
			t.Errorf("%s: got actions %t in state %s, want %t and %s", when, aws.ToBool(a.ActionsEnabled), a.StateValue, on, state)
		}
	}
	hear := func(name string, at time.Time) bool {
		t.Helper()
		heard, err := cloudwatch.New(cfg, table, topic, name).HearSilence(ctx, at)
		if err != nil {
			t.Fatal(err)
		}
		return heard
	}

	deploy()
	if err := cloudwatch.New(cfg, table, topic, silence).Keep(ctx, time.Now(), nil); err != nil {
		t.Fatal(err)
	}
	is("after a round", true, types.StateValueAlarm)
	if hear(silence, time.Now().Add(time.Hour)) {
		t.Error("an alarm that is on was turned on again")
	}

	deploy()
	if hear(silence, time.Now().Add(9*time.Minute)) || hear("", time.Now().Add(time.Hour)) || hear("of-nobody", time.Now().Add(time.Hour)) {
		t.Error("a stack that is younger than ten minutes, or that has no such alarm: want nothing done")
	}
	is("before ten minutes", false, types.StateValueAlarm)
	if !hear(silence, time.Now().Add(11*time.Minute)) {
		t.Error("a poller that makes no round was not announced")
	}
	is("after ten minutes", true, types.StateValueInsufficientData) // so that the next evaluation acts
}
