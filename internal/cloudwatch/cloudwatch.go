// Package cloudwatch brings metrics and the accounts' alarms to CloudWatch. What they are
// is decided by packages metric and alarm.
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

	"holdfast/internal/account"
	"holdfast/internal/alarm"
	"holdfast/internal/metric"
)

// Watch is one holdfast's part of CloudWatch.
type Watch struct {
	client *cloudwatch.Client
	table  string
	topic  string
}

// New returns the part that belongs to a table. Alarms notify the topic; an empty one lets
// them notify nobody. Nobody is contacted.
func New(cfg aws.Config, table, topic string) *Watch {
	return &Watch{client: cloudwatch.NewFromConfig(cfg), table: table, topic: topic}
}

// atOnce is how many data CloudWatch takes in one call.
const atOnce = 1000

// Put sends data that were computed at an instant.
func (w *Watch) Put(ctx context.Context, at time.Time, data []metric.Datum) error {
	for some := range slices.Chunk(data, atOnce) {
		in := &cloudwatch.PutMetricDataInput{Namespace: aws.String(metric.Namespace)}
		for _, d := range some {
			in.MetricData = append(in.MetricData, types.MetricDatum{
				MetricName: aws.String(string(d.Name)), Value: aws.Float64(d.Value), Timestamp: aws.Time(at),
				Unit: types.StandardUnit(metric.Of(d.Name).Unit), Dimensions: dimensions(d.Dimensions),
			})
		}
		if _, err := w.client.PutMetricData(ctx, in); err != nil {
			return fmt.Errorf("put metrics: %w", err)
		}
	}
	return nil
}

func dimensions(ds []metric.Dimension) []types.Dimension {
	var out []types.Dimension
	for _, d := range ds {
		out = append(out, types.Dimension{Name: aws.String(d.Name), Value: aws.String(d.Value)})
	}
	return out
}

// KeepAlarms makes the accounts' alarms what package alarm says, and no others. What is so
// already costs one call that reads.
func (w *Watch) KeepAlarms(ctx context.Context, accounts []account.Account) error {
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

// RemoveAlarms removes the alarms of an account; that there are none is no error.
func (w *Watch) RemoveAlarms(ctx context.Context, account string) error {
	return w.remove(ctx, alarm.Names(w.table, account))
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
		Dimensions: dimensions([]metric.Dimension{{Name: metric.Account, Value: a.Account}}),
		Statistic:  types.StatisticMaximum, Period: aws.Int32(alarm.Period), EvaluationPeriods: aws.Int32(alarm.Points),
		ComparisonOperator: types.ComparisonOperatorGreaterThanOrEqualToThreshold, Threshold: aws.Float64(a.AtLeast),
		TreatMissingData: aws.String("notBreaching"),
	}
	if w.topic != "" {
		in.AlarmActions, in.OKActions = []string{w.topic}, []string{w.topic}
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
	if len(m.Dimensions) == 1 {
		a.Account = aws.ToString(m.Dimensions[0].Value)
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
