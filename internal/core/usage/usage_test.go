package usage_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/core/usage"
)

var t0 = time.Date(2027, 3, 4, 10, 59, 59, 0, time.UTC)

var marlow = usage.Who{Account: "acc-1", Model: "claude-opus-5", Key: "laptop", Agent: "claude-cli"}

func TestTally(t *testing.T) {
	var tally usage.Tally
	if tally.Due(t0, time.Minute) || len(tally.Give(t0)) != 0 {
		t.Error("an empty tally has something to give")
	}
	tally.Count(t0, marlow, usage.Counts{Requests: 1, Input: 10})
	tally.Count(t0.Add(time.Second), marlow, usage.Counts{Requests: 1, Input: 5}) // the next hour
	tally.Count(t0, marlow, usage.Counts{Requests: 1, Output: 7})
	if !tally.Due(t0.Add(time.Minute), time.Minute) || tally.Due(t0.Add(time.Minute-1), time.Minute) {
		t.Error("it is due a minute after it last gave something, not before")
	}
	got := tally.Give(t0)
	if len(got) != 2 || got[0].Hour.Hour() != 10 || got[1].Hour.Hour() != 11 || got[0].Number >= got[1].Number {
		t.Fatalf("got %+v, want a batch for each hour", got)
	}
	if c := got[0].Rows[marlow]; c != (usage.Counts{Requests: 2, Input: 10, Output: 7}) {
		t.Errorf("got %+v", c)
	}
	// What was not kept is given again as it was; what came since has a number of its own.
	tally.Kept(got[0].Number)
	tally.Count(t0.Add(2*time.Second), marlow, usage.Counts{Requests: 1})
	again := tally.Give(t0)
	if len(again) != 2 || again[0].Number != got[1].Number || again[0].Rows[marlow].Requests != 1 || again[1].Number <= again[0].Number {
		t.Errorf("got %+v, want the batch that was not kept, and a new one", again)
	}
}

// A store that is away for long loses nothing.
func TestTallyWhileTheStoreIsAway(t *testing.T) {
	var tally usage.Tally
	for i := range 100 {
		tally.Count(t0.Add(time.Duration(i)*time.Minute), marlow, usage.Counts{Requests: 1})
		tally.Give(t0.Add(time.Duration(i) * time.Minute))
	}
	var sum int64
	for range 100 {
		for _, b := range tally.Give(t0) {
			sum += b.Rows[marlow].Requests
			tally.Kept(b.Number)
		}
	}
	if sum != 100 {
		t.Errorf("got %d requests, want 100", sum)
	}
}

// A batch whose answer was lost is sent again and counted once.
func TestRecordTakesABatchOnce(t *testing.T) {
	var r usage.Record
	b := usage.Batch{Hour: t0, Number: 1, Rows: usage.Rows{marlow: {Requests: 3, Input: 9}}}
	if !r.Take("one", b) || r.Take("one", b) {
		t.Error("a batch is to be taken once")
	}
	if !r.Take("two", b) {
		t.Error("another process's batch has the same number, and is another")
	}
	if got := r.Rows[marlow]; got != (usage.Counts{Requests: 6, Input: 18}) {
		t.Errorf("got %+v", got)
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var read usage.Record
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, read); diff != "" {
		t.Errorf("written and read (-want +got):\n%s", diff)
	}
	if read.Take("one", b) {
		t.Error("a record that was read again took a batch twice")
	}
}

// However many models a client invents, a record stays small and its sums exact.
func TestRowsAreBounded(t *testing.T) {
	r := usage.Record{}
	for i := range 5000 {
		rows := usage.Rows{{Account: fmt.Sprint("acc-", i%3), Model: usage.Name(strings.Repeat("m", 200) + fmt.Sprint(i)), Key: "k", Agent: fmt.Sprint("a", i)}: {Requests: 1, Output: 2}}
		r.Take("p", usage.Batch{Number: int64(i + 1), Rows: rows})
	}
	var sum usage.Counts
	for _, c := range r.Rows {
		sum.Add(c)
	}
	if sum.Requests != 5000 || sum.Output != 10000 {
		t.Errorf("got %+v, want 5000 requests", sum)
	}
	text, _ := json.Marshal(r)
	if len(r.Rows) > usage.MostRows+3 || len(text) > 200_000 {
		t.Errorf("got %d rows in %d bytes", len(r.Rows), len(text))
	}
}

func TestDamagedRecord(t *testing.T) {
	for _, text := range []string{`{"names":["a"],"rows":[[0,0,0,1]]}`, `{"names":["a"],"rows":[[0,0,0]]}`, `{"names":["a"],"rows":[[-1,0,0,0]]}`, `{"names":["a"],"rows":[[0,0,0,0,1,2,3,4,5,6,7,8,9,10]]}`, `[]`} {
		if err := json.Unmarshal([]byte(text), &usage.Record{}); err == nil {
			t.Errorf("%s was read", text)
		}
	}
}

func TestNames(t *testing.T) {
	for in, want := range map[string]string{
		"claude-cli/2.1.332 (external, cli)": "claude-cli", "codex_cli_rs/0.171.0 (Debian)": "codex_cli_rs", "OpenAI/Python 3.1": "openai",
		"": "unknown", "  ": "unknown", "curl": "curl", "\x1b[31mred/1": "[31mred",
	} {
		if got := usage.AgentOf(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	if got := usage.Name(strings.Repeat("ä", 60)); len(got) > 64 || !strings.HasPrefix(got, "ää") {
		t.Errorf("got %q", got)
	}
}

func TestPrices(t *testing.T) {
	counts := usage.Counts{Input: 1_000_000, CacheRead: 2_000_000, CacheWrite: 100_000, Output: 500_000}
	for model, want := range map[string]float64{
		"claude-opus-5":              5 + 1 + 0.625 + 12.5,
		"claude-opus-5[1m]":          5 + 1 + 0.625 + 12.5,
		"claude-haiku-4-5-20251001":  1 + 0.2 + 0.125 + 2.5,
		"Claude-Fable-5-1-20260901":  10 + 0.5 + 1.25 + 25,
		"claude-fable-5-20260401":    10 + 2 + 1.25 + 25,
		"claude-sonnet-4-6-20260101": 3 + 0.6 + 0.375 + 7.5,
	} {
		p, known := usage.PriceOf(model, nil)
		if got := p.Cost(counts); !known || math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: got %v, known %v, want %v", model, got, known, want)
		}
	}
	for _, model := range []string{"gpt-5.5", "", "claude-opus-9", "opus"} {
		if _, known := usage.PriceOf(model, nil); known {
			t.Errorf("%q has a price", model)
		}
	}
	own, ok := usage.ParsePrice(" gpt-5* = 1.25/0.125/1.25/10")
	if !ok {
		t.Fatal("the price was not read")
	}
	if p, known := usage.PriceOf("gpt-5.5", []usage.Price{own}); !known || p.Output != 10 {
		t.Errorf("got %+v, %v", p, known)
	}
	for _, text := range []string{"", "gpt=1/2/3", "gpt=1/2/3/4/5", "=1/2/3/4", "gpt", "gpt=1/2/3/-4", "gpt=NaN/1/1/1", "gpt=Inf/1/1/1", "[=1/1/1/1"} {
		if _, ok := usage.ParsePrice(text); ok {
			t.Errorf("%q was read as a price", text)
		}
	}
}
