package functiontest

import (
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"holdfast/internal/alarmstate"
	"holdfast/internal/awstest"
)

func (d *Deployment) cloudwatch() *cloudwatch.Client {
	return cloudwatch.NewFromConfig(awstest.Config(d.Endpoint))
}

// Alarms are all alarms of the account, by name.
func (d *Deployment) Alarms() map[string]alarmstate.Definition {
	d.t.Helper()
	all := map[string]alarmstate.Definition{}
	pages := cloudwatch.NewDescribeAlarmsPaginator(d.cloudwatch(), &cloudwatch.DescribeAlarmsInput{})
	for pages.HasMorePages() {
		page, err := pages.NextPage(d.t.Context())
		if err != nil {
			d.t.Fatal(err)
		}
		for _, a := range page.MetricAlarms {
			def := alarmstate.Definition{
				Name: aws.ToString(a.AlarmName), Namespace: aws.ToString(a.Namespace), Metric: aws.ToString(a.MetricName),
				Dimensions: map[string]string{}, Statistic: string(a.Statistic), Period: time.Duration(aws.ToInt32(a.Period)) * time.Second,
				Periods: int(aws.ToInt32(a.EvaluationPeriods)), ToAlarm: int(aws.ToInt32(a.DatapointsToAlarm)),
				Comparison: string(a.ComparisonOperator), Threshold: aws.ToFloat64(a.Threshold), Missing: aws.ToString(a.TreatMissingData),
				Actions: a.AlarmActions, OKActions: a.OKActions,
			}
			if def.ToAlarm == 0 {
				def.ToAlarm = def.Periods
			}
			for _, each := range a.Dimensions {
				def.Dimensions[aws.ToString(each.Name)] = aws.ToString(each.Value)
			}
			all[def.Name] = def
		}
	}
	return all
}

// RemoveAlarm removes an alarm; PutAlarm makes one that is never raised.
func (d *Deployment) RemoveAlarm(name string) {
	d.t.Helper()
	if _, err := d.cloudwatch().DeleteAlarms(d.t.Context(), &cloudwatch.DeleteAlarmsInput{AlarmNames: []string{name}}); err != nil {
		d.t.Fatal(err)
	}
}

// PutAlarm makes an alarm that nobody asked for.
func (d *Deployment) PutAlarm(name string) {
	d.t.Helper()
	_, err := d.cloudwatch().PutMetricAlarm(d.t.Context(), &cloudwatch.PutMetricAlarmInput{
		AlarmName: &name, Namespace: aws.String("Holdfast"), MetricName: aws.String("Parked"), Statistic: types.StatisticMaximum,
		Period: aws.Int32(60), EvaluationPeriods: aws.Int32(1), Threshold: aws.Float64(1),
		ComparisonOperator: types.ComparisonOperatorGreaterThanOrEqualToThreshold, TreatMissingData: aws.String("notBreaching"),
	})
	if err != nil {
		d.t.Fatal(err)
	}
}

// Points are the data points that an alarm looks at, of the periods from from to to.
func (d *Deployment) Points(of alarmstate.Definition, from, to time.Time) map[time.Time]float64 {
	d.t.Helper()
	return d.points(of, from, to, of.Period)
}

// Newest is the newest value that an alarm's metric was given, and whether there is any.
func (d *Deployment) Newest(of alarmstate.Definition) (value float64, at time.Time, there bool) {
	d.t.Helper()
	now := time.Now()
	for when, v := range d.points(of, now.Add(-time.Hour), now.Add(time.Minute), time.Second) { // of a second each: as they were given
		if when.After(at) {
			value, at, there = v, when, true
		}
	}
	return value, at, there
}

func (d *Deployment) points(of alarmstate.Definition, from, to time.Time, period time.Duration) map[time.Time]float64 {
	d.t.Helper()
	in := &cloudwatch.GetMetricStatisticsInput{
		Namespace: &of.Namespace, MetricName: &of.Metric, StartTime: &from, EndTime: &to,
		Period: aws.Int32(int32(period / time.Second)), Statistics: []types.Statistic{types.Statistic(of.Statistic)},
	}
	for name, value := range of.Dimensions {
		in.Dimensions = append(in.Dimensions, types.Dimension{Name: &name, Value: &value})
	}
	slices.SortFunc(in.Dimensions, func(a, b types.Dimension) int { return strings.Compare(*a.Name, *b.Name) })
	out, err := d.cloudwatch().GetMetricStatistics(d.t.Context(), in)
	if err != nil {
		d.t.Fatal(err)
	}
	points := map[time.Time]float64{}
	for _, p := range out.Datapoints {
		v := map[string]*float64{"Minimum": p.Minimum, "Maximum": p.Maximum, "Sum": p.Sum, "Average": p.Average, "SampleCount": p.SampleCount}[of.Statistic]
		if v == nil {
			d.t.Fatalf("got data point %+v, want its %s", p, of.Statistic)
		}
		points[p.Timestamp.UTC()] = *v
	}
	return points
}

// Dashboard is the body of a dashboard.
func (d *Deployment) Dashboard(name string) string {
	d.t.Helper()
	out, err := d.cloudwatch().GetDashboard(d.t.Context(), &cloudwatch.GetDashboardInput{DashboardName: &name})
	if err != nil {
		d.t.Fatal(err)
	}
	return aws.ToString(out.DashboardBody)
}

// Dashboards are the names of those there are.
func (d *Deployment) Dashboards() (names []string) {
	d.t.Helper()
	out, err := d.cloudwatch().ListDashboards(d.t.Context(), &cloudwatch.ListDashboardsInput{})
	if err != nil {
		d.t.Fatal(err)
	}
	for _, each := range out.DashboardEntries {
		names = append(names, aws.ToString(each.DashboardName))
	}
	return names
}
