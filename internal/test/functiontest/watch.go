package functiontest

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"holdfast/internal/test/alarmstate"
	"holdfast/internal/test/awstest"
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
				Actions: a.AlarmActions, OKActions: a.OKActions, Off: !aws.ToBool(a.ActionsEnabled),
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
		AlarmName: &name, Namespace: aws.String("Holdfast"), MetricName: aws.String("NeedsOwner"), Statistic: types.StatisticMaximum,
		Period: aws.Int32(60), EvaluationPeriods: aws.Int32(1), Threshold: aws.Float64(1),
		ComparisonOperator: types.ComparisonOperatorGreaterThanOrEqualToThreshold, TreatMissingData: aws.String("notBreaching"),
	})
	if err != nil {
		d.t.Fatal(err)
	}
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
