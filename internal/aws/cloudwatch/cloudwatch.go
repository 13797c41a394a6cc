// Package cloudwatch brings the accounts' alarms to CloudWatch, and turns on the alarm about
// the poller's silence. What the alarms are is decided by package alarm; metrics reach
// CloudWatch by the functions' logs.
//
// All calls are the poller's, or a command's: nothing here is for the request path.
package cloudwatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/smithy-go"

	"holdfast/internal/core/account"
	"holdfast/internal/core/alarm"
	"holdfast/internal/core/metric"
)

// Watch is one holdfast's part of CloudWatch. It is for one goroutine.
type Watch struct {
	client  *cloudwatch.Client
	table   string
	topic   string
	silence string

	kept   []account.Account
	keptAt time.Time
}

// New returns the part that belongs to a table. Alarms notify the topic; an empty one lets
// them notify nobody. silence names the alarm about a poller that makes no rounds; empty
// where none exists. Nobody is contacted.
func New(cfg aws.Config, table, topic, silence string) *Watch {
	return &Watch{client: cloudwatch.NewFromConfig(cfg), table: table, topic: topic, silence: silence}
}

func dimensions(ds []metric.Dimension) []types.Dimension {
	var out []types.Dimension
	for _, d := range ds {
		out = append(out, types.Dimension{Name: aws.String(d.Name), Value: aws.String(d.Value)})
	}
	return out
}

// keepEvery is how often alarms are looked at while the accounts stay the same: somebody
// else may have changed them.
const keepEvery = time.Hour

// Keep makes the accounts' alarms what package alarm says, and no others, and turns on the
// alarm about a poller that makes no rounds, since one is being made. It calls CloudWatch
// the first time, when the accounts are others than the time before, and once an hour. now
// is an instant of the caller's clock.
func (w *Watch) Keep(ctx context.Context, now time.Time, accounts []account.Account) error {
	if since := now.Sub(w.keptAt); since >= 0 && since < keepEvery && slices.EqualFunc(w.kept, accounts, alike) {
		return nil
	}
	if err := errors.Join(w.keepAlarms(ctx, accounts), w.hear(ctx)); err != nil {
		return err
	}
	w.kept, w.keptAt = slices.Clone(accounts), now
	return nil
}

// alike reports whether two accounts have the same alarm.
func alike(a, b account.Account) bool {
	return a.Name == b.Name && a.Provider == b.Provider && a.Kind == b.Kind
}

// hear turns the actions of the alarm about silence on. A new stack has them off: before
// the first round the alarm is raised, and that is no failure.
func (w *Watch) hear(ctx context.Context) error {
	if w.silence == "" {
		return nil
	}
	if _, err := w.client.EnableAlarmActions(ctx, &cloudwatch.EnableAlarmActionsInput{AlarmNames: []string{w.silence}}); err != nil {
		return fmt.Errorf("turn on alarm %s: %w", w.silence, err)
	}
	return nil
}

// firstRoundWithin is how long after its deployment a stack may be without a round.
const firstRoundWithin = 10 * time.Minute

// HearSilence is for a holdfast whose poller has never made a round. Once the stack is older
// than ten minutes, that is a failure: the alarm about it is turned on and, since an alarm
// acts only when its state changes, evaluated anew. It reports whether it did so.
func (w *Watch) HearSilence(ctx context.Context, now time.Time) (bool, error) {
	if w.silence == "" {
		return false, nil
	}
	out, err := w.client.DescribeAlarms(ctx, &cloudwatch.DescribeAlarmsInput{AlarmNames: []string{w.silence}})
	if err != nil {
		return false, fmt.Errorf("look at alarm %s: %w", w.silence, err)
	}
	if len(out.MetricAlarms) == 0 {
		return false, nil
	}
	a := out.MetricAlarms[0]
	if aws.ToBool(a.ActionsEnabled) || now.Sub(aws.ToTime(a.AlarmConfigurationUpdatedTimestamp)) < firstRoundWithin {
		return false, nil
	}
	if err := w.hear(ctx); err != nil {
		return false, err
	}
	_, err = w.client.SetAlarmState(ctx, &cloudwatch.SetAlarmStateInput{
		AlarmName: &w.silence, StateValue: types.StateValueInsufficientData, StateReason: aws.String("the poller has never made a round"),
	})
	if err != nil {
		return false, fmt.Errorf("evaluate alarm %s anew: %w", w.silence, err)
	}
	return true, nil
}

// keepAlarms reads the accounts' alarms and writes those that are not as they should be.
func (w *Watch) keepAlarms(ctx context.Context, accounts []account.Account) error {
	have, err := w.alarms(ctx)
	if err != nil {
		return err
	}
	write, remove := alarm.Changes(w.table, accounts, have)
	var failed []error
	for _, a := range write {
		if _, err := w.client.PutMetricAlarm(ctx, w.definition(a)); err != nil {
			failed = append(failed, fmt.Errorf("put alarm %s: %w", a.Name, err))
		}
	}
	if len(remove) > 0 {
		failed = append(failed, w.remove(ctx, remove))
	}
	return errors.Join(failed...)
}

// RemoveAlarm removes the alarm of an account. Where the account has no alarm, it does nothing.
func (w *Watch) RemoveAlarm(ctx context.Context, account string) error {
	return w.remove(ctx, []string{alarm.Name(w.table, account)})
}

// removedAtOnce is how many alarms CloudWatch removes in one call.
const removedAtOnce = 100

func (w *Watch) remove(ctx context.Context, names []string) error {
	for some := range slices.Chunk(names, removedAtOnce) {
		_, err := w.client.DeleteAlarms(ctx, &cloudwatch.DeleteAlarmsInput{AlarmNames: some})
		var api smithy.APIError
		if errors.As(err, &api) && strings.HasPrefix(api.ErrorCode(), "ResourceNotFound") {
			continue
		}
		if err != nil {
			return fmt.Errorf("remove alarms: %w", err)
		}
	}
	return nil
}

// definition is an alarm as CloudWatch has it.
func (w *Watch) definition(a alarm.Alarm) *cloudwatch.PutMetricAlarmInput {
	in := &cloudwatch.PutMetricAlarmInput{
		AlarmName: aws.String(a.Name), AlarmDescription: aws.String(a.Description),
		Namespace: aws.String(metric.Namespace), MetricName: aws.String(string(a.Metric)),
		Dimensions: dimensions([]metric.Dimension{{Name: metric.Table, Value: a.Table}, {Name: metric.Account, Value: a.Account}}),
		Statistic:  types.StatisticMaximum, Period: aws.Int32(alarm.Period), EvaluationPeriods: aws.Int32(alarm.Points),
		ComparisonOperator: types.ComparisonOperatorGreaterThanOrEqualToThreshold, Threshold: aws.Float64(a.AtLeast),
		TreatMissingData: aws.String("notBreaching"),
	}
	if w.topic != "" {
		in.AlarmActions = []string{w.topic} // and nobody when it ends: package alarm says why
	}
	return in
}

// alarms are the table's account alarms as they are. One that is not defined the way it
// would be written now comes with its name alone, so that it counts as another.
func (w *Watch) alarms(ctx context.Context) ([]alarm.Alarm, error) {
	var all []alarm.Alarm
	pages := cloudwatch.NewDescribeAlarmsPaginator(w.client, &cloudwatch.DescribeAlarmsInput{
		AlarmNamePrefix: aws.String(alarm.Prefix(w.table)), AlarmTypes: []types.AlarmType{types.AlarmTypeMetricAlarm},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("look at the alarms: %w", err)
		}
		for _, m := range page.MetricAlarms {
			all = append(all, w.read(m))
		}
	}
	return all, nil
}

func (w *Watch) read(m types.MetricAlarm) alarm.Alarm {
	a := alarm.Alarm{
		Name: aws.ToString(m.AlarmName), Description: aws.ToString(m.AlarmDescription),
		Metric: metric.Name(aws.ToString(m.MetricName)), AtLeast: aws.ToFloat64(m.Threshold),
	}
	for _, d := range m.Dimensions {
		switch aws.ToString(d.Name) {
		case metric.Table:
			a.Table = aws.ToString(d.Value)
		case metric.Account:
			a.Account = aws.ToString(d.Value)
		}
	}
	want := w.definition(a)
	if aws.ToString(want.Namespace) != aws.ToString(m.Namespace) || want.Statistic != m.Statistic ||
		aws.ToInt32(want.Period) != aws.ToInt32(m.Period) || aws.ToInt32(want.EvaluationPeriods) != aws.ToInt32(m.EvaluationPeriods) ||
		want.ComparisonOperator != m.ComparisonOperator || aws.ToString(want.TreatMissingData) != aws.ToString(m.TreatMissingData) ||
		!slices.Equal(want.AlarmActions, m.AlarmActions) || !slices.Equal(want.OKActions, m.OKActions) {
		return alarm.Alarm{Name: a.Name}
	}
	return a
}
