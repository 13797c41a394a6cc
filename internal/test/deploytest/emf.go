package deploytest

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"holdfast/internal/core/metric"
)

// units are CloudWatch's words for what a value counts, as far as they are used.
var units = []string{"None", "Count", "Seconds", "Milliseconds"}

// Extract reads a line of a log as CloudWatch does by its specification of the embedded
// metric format: the metadata names members at the top of the line, of which metrics are
// numbers and dimensions texts. It returns the data with the time they are of, and false
// for a line without metrics.
func Extract(line []byte) (data []metric.Datum, at time.Time, measured bool, err error) {
	var head struct {
		AWS *struct {
			Timestamp         *int64
			CloudWatchMetrics []struct {
				Namespace  string
				Dimensions [][]string
				Metrics    []struct {
					Name, Unit        string
					StorageResolution int
				}
			}
		} `json:"_aws"`
	}
	var members map[string]any
	if err := json.Unmarshal(line, &members); err != nil {
		return nil, at, false, nil //nolint:nilerr // a line of the platform's, which is no JSON
	}
	if _, measured = members["_aws"]; !measured {
		return nil, at, false, nil
	}
	if err := json.Unmarshal(line, &head); err != nil {
		return nil, at, true, fmt.Errorf("read the metadata: %w", err)
	}
	if head.AWS.Timestamp == nil || len(head.AWS.CloudWatchMetrics) == 0 || len(line) > 256<<10 {
		return nil, at, true, errors.New("want a time in milliseconds, a directive, and at most 256 KiB")
	}
	at = time.UnixMilli(*head.AWS.Timestamp)
	for _, d := range head.AWS.CloudWatchMetrics {
		if d.Namespace == "" || len(d.Dimensions) == 0 || len(d.Metrics) == 0 || len(d.Metrics) > 100 {
			return nil, at, true, fmt.Errorf("directive %+v: want a namespace, sets of dimensions, 1 to 100 metrics", d)
		}
		for _, set := range d.Dimensions {
			if len(set) > 30 {
				return nil, at, true, fmt.Errorf("%d dimensions: at most 30", len(set))
			}
			for _, m := range d.Metrics {
				value, number := members[m.Name].(float64)
				if !number || math.Abs(value) > math.MaxFloat64 || !slices.Contains(units, m.Unit) || m.StorageResolution != 0 {
					return nil, at, true, fmt.Errorf("metric %s: want a number and a unit of CloudWatch's", m.Name)
				}
				datum := metric.Datum{Name: metric.Name(m.Name), Value: value}
				for _, name := range set {
					text, is := members[name].(string)
					if !is || text == "" || len(text) > 1024 || len(name) > 255 {
						return nil, at, true, fmt.Errorf("dimension %s: want a text", name)
					}
					datum.Dimensions = append(datum.Dimensions, metric.Dimension{Name: name, Value: text})
				}
				if d.Namespace != metric.Namespace || !datum.Defined() || m.Unit != string(metric.Of(datum.Name).Unit) {
					return nil, at, true, fmt.Errorf("metric %s in %s: not as it is defined", m.Name, d.Namespace)
				}
				data = append(data, datum)
			}
		}
	}
	return data, at, true, nil
}
