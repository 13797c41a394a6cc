package cost_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/tool/cost"
)

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(a), math.Abs(b)) }

// A million requests that stream for 30 s at 128 MB: 3.75 million GB-seconds, of which
// 400,000 are free, at 13.3334 millionths of a dollar; and 20 cents, all of which are free.
func TestBill(t *testing.T) {
	q := cost.Quantities{cost.Requests: 1e6, cost.Compute: 1e6 * cost.GBSeconds(128, 30), cost.Reads: 6e6, cost.Metrics: 40}
	for _, c := range []struct {
		name string
		free bool
		want []cost.Line
	}{
		{"list", false, []cost.Line{{cost.Requests, 1e6, 0.20}, {cost.Compute, 3.75e6, 50.00025}, {cost.Reads, 6e6, 0.75}, {cost.Metrics, 40, 12}}},
		{"free tier", true, []cost.Line{{cost.Requests, 1e6, 0}, {cost.Compute, 3.75e6, 44.66689}, {cost.Reads, 6e6, 0.75}, {cost.Metrics, 40, 9}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := cost.Bill(q, c.free)
			if diff := cmp.Diff(c.want, got, cmp.Comparer(near)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			sum := 0.0
			for _, l := range c.want {
				sum += l.USD
			}
			if total := cost.Total(got); !near(total, sum) {
				t.Errorf("got a total of %v, want %v", total, sum)
			}
			if l, share := cost.Largest(got); l.Item != cost.Compute || !near(share, c.want[1].USD/sum) {
				t.Errorf("got %s with a share of %v, want %s with %v", l.Item, share, cost.Compute, c.want[1].USD/sum)
			}
		})
	}
	if l, share := cost.Largest(cost.Bill(cost.Quantities{cost.Requests: 10}, true)); l != (cost.Line{}) || share != 0 {
		t.Errorf("a bill over nothing: got %v, %v", l, share)
	}
	if got := cost.Bill(cost.Quantities{cost.Alarms: 4}, true); len(got) != 1 || got[0].USD != 0 {
		t.Errorf("less than what is free: got %v, want a line over 0", got)
	}
}

func TestQuantities(t *testing.T) {
	one, two := cost.Quantities{cost.Reads: 2, cost.Writes: 1}, cost.Quantities{cost.Reads: 3, cost.Logs: 4}
	if diff := cmp.Diff(cost.Quantities{cost.Reads: 5, cost.Writes: 1, cost.Logs: 4}, one.Plus(two)); diff != "" {
		t.Errorf("plus (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(cost.Quantities{cost.Reads: 20, cost.Writes: 10}, one.Times(10)); diff != "" {
		t.Errorf("times (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(cost.Quantities{cost.Reads: 2, cost.Writes: 1}, one); diff != "" {
		t.Errorf("it was changed (-want +got)\n%s", diff)
	}
}

func TestUnits(t *testing.T) {
	for bytes, want := range map[int]float64{0: 1, 1: 1, 4096: 1, 4097: 2, 400 << 10: 100} {
		if got := cost.ReadUnits(bytes); got != want {
			t.Errorf("read of %d bytes: got %v units, want %v", bytes, got, want)
		}
	}
	for _, c := range []struct {
		before, after int
		want          float64
	}{{0, 0, 1}, {0, 1, 1}, {0, 1024, 1}, {0, 1025, 2}, {5000, 100, 5}, {100, 10 << 10, 10}} {
		if got := cost.WriteUnits(c.before, c.after); got != c.want {
			t.Errorf("write of %d over %d bytes: got %v units, want %v", c.after, c.before, got, c.want)
		}
	}
}

func TestPrices(t *testing.T) {
	seen := map[cost.Item]bool{}
	for _, p := range cost.Prices {
		if seen[p.Item] || p.USD <= 0 || p.Free < 0 || !strings.HasPrefix(p.Source, "https://aws.amazon.com/") {
			t.Errorf("got %+v, want each item once, with a price and the page that names it", p)
		}
		seen[p.Item] = true
		if got := cost.PriceOf(p.Item); got != p {
			t.Errorf("price of %s: got %+v, want %+v", p.Item, got, p)
		}
	}
	if got := cost.PriceOf("a unicorn"); got != (cost.Price{}) {
		t.Errorf("got %+v for what is not sold", got)
	}
}
