package deploytest

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"holdfast/internal/test/alarmstate"
)

// template is the part of a template that is read.
type template struct {
	Resources map[string]struct {
		Type       string    `yaml:"Type"`
		Properties yaml.Node `yaml:"Properties"`
	} `yaml:"Resources"`
}

// Alarms are the alarms that a template declares, by their logical names. parameters are
// the template's, and pseudo parameters such as AWS::Region.
func Alarms(body []byte, parameters map[string]string) (map[string]alarmstate.Definition, error) {
	var t template
	if err := yaml.Unmarshal(body, &t); err != nil {
		return nil, fmt.Errorf("read the template: %w", err)
	}
	alarms := map[string]alarmstate.Definition{}
	for name, r := range t.Resources {
		if r.Type != "AWS::CloudWatch::Alarm" {
			return nil, fmt.Errorf("%s is a %s, not an alarm", name, r.Type)
		}
		if err := resolve(&r.Properties, parameters); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		a, err := alarm(&r.Properties)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		alarms[name] = a
	}
	return alarms, nil
}

// properties are an alarm's, in CloudFormation's words.
type properties struct {
	AlarmName          string              `yaml:"AlarmName"`
	AlarmDescription   string              `yaml:"AlarmDescription"`
	Namespace          string              `yaml:"Namespace"`
	MetricName         string              `yaml:"MetricName"`
	Dimensions         []map[string]string `yaml:"Dimensions"`
	Statistic          string              `yaml:"Statistic"`
	Period             int                 `yaml:"Period"`
	EvaluationPeriods  int                 `yaml:"EvaluationPeriods"`
	DatapointsToAlarm  int                 `yaml:"DatapointsToAlarm"`
	ComparisonOperator string              `yaml:"ComparisonOperator"`
	Threshold          *float64            `yaml:"Threshold"`
	TreatMissingData   string              `yaml:"TreatMissingData"`
	AlarmActions       []string            `yaml:"AlarmActions"`
	OKActions          []string            `yaml:"OKActions"`
	ActionsEnabled     *bool               `yaml:"ActionsEnabled"`
	// Others are not known here.
	Others map[string]any `yaml:",inline"`
}

func alarm(node *yaml.Node) (alarmstate.Definition, error) {
	var p properties
	if err := node.Decode(&p); err != nil {
		return alarmstate.Definition{}, err
	}
	for name := range p.Others {
		return alarmstate.Definition{}, fmt.Errorf("property %s is not known here", name)
	}
	if p.Threshold == nil || p.AlarmDescription == "" {
		return alarmstate.Definition{}, errors.New("an alarm has a threshold, and a description that says what to do")
	}
	d := alarmstate.Definition{
		Name: p.AlarmName, Namespace: p.Namespace, Metric: p.MetricName, Dimensions: map[string]string{}, Statistic: p.Statistic,
		Period: time.Duration(p.Period) * time.Second, Periods: p.EvaluationPeriods, ToAlarm: p.DatapointsToAlarm,
		Comparison: p.ComparisonOperator, Threshold: *p.Threshold, Missing: p.TreatMissingData,
		Actions: p.AlarmActions, OKActions: p.OKActions, Off: p.ActionsEnabled != nil && !*p.ActionsEnabled,
	}
	if d.ToAlarm == 0 {
		d.ToAlarm = d.Periods
	}
	for _, each := range p.Dimensions {
		d.Dimensions[each["Name"]] = each["Value"]
	}
	return d, nil
}

// Dashboard is the body of the dashboard that a template declares.
func Dashboard(body []byte, parameters map[string]string) (string, error) {
	var t template
	if err := yaml.Unmarshal(body, &t); err != nil {
		return "", fmt.Errorf("read the template: %w", err)
	}
	for _, r := range t.Resources {
		if r.Type != "AWS::CloudWatch::Dashboard" {
			continue
		}
		if err := resolve(&r.Properties, parameters); err != nil {
			return "", err
		}
		properties := map[string]string{}
		if err := r.Properties.Decode(&properties); err != nil {
			return "", err
		}
		return properties["DashboardBody"], nil
	}
	return "", errors.New("the template has no dashboard")
}

var variable = regexp.MustCompile(`\$\{([A-Za-z0-9:]+)\}`)

// resolve puts parameters in place of what refers to them.
func resolve(n *yaml.Node, parameters map[string]string) error {
	switch n.Tag {
	case "!Ref":
		value, known := parameters[n.Value]
		if !known {
			return fmt.Errorf("line %d refers to %s", n.Line, n.Value)
		}
		n.Value, n.Tag = value, "!!str"
	case "!Sub":
		var unknown []string
		n.Value = variable.ReplaceAllStringFunc(n.Value, func(s string) string {
			value, known := parameters[strings.Trim(s, "${}")]
			if !known {
				unknown = append(unknown, s)
			}
			return value
		})
		if unknown != nil {
			return fmt.Errorf("line %d has %q", n.Line, unknown)
		}
		n.Tag = "!!str"
	default:
		if strings.HasPrefix(n.Tag, "!") && !strings.HasPrefix(n.Tag, "!!") {
			return fmt.Errorf("line %d has %s, which is not known here", n.Line, n.Tag)
		}
	}
	for _, below := range n.Content {
		if err := resolve(below, parameters); err != nil {
			return err
		}
	}
	return nil
}

// Dimension is a dimension of a series. A search leaves the value open: it is empty.
type Dimension struct{ Name, Value string }

// Series is a metric with its dimensions, by their names in order.
type Series struct {
	Namespace, Metric string
	Dimensions        []Dimension
}

func (s Series) String() string {
	var of []string
	for _, d := range s.Dimensions {
		of = append(of, d.Name+"="+strconv.Quote(d.Value))
	}
	return s.Namespace + " " + s.Metric + "{" + strings.Join(of, ",") + "}"
}

func sorted(dimensions []Dimension) []Dimension {
	slices.SortFunc(dimensions, func(a, b Dimension) int { return strings.Compare(a.Name, b.Name) })
	return dimensions
}
