package main_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/internal/test/functiontest"
	"holdfast/internal/test/upstreamtest"
)

// TestCalls counts what each kind of request asks of AWS. Before the upstream request of a
// pinned conversation there is one read; whatever is written beside the answer is an
// UpdateItem of one item. A reading is written after every placement, although its figures
// are the stored ones: it says which placements it has seen.
func TestCalls(t *testing.T) {
	b := functiontest.New(t)
	accounts := map[string]*upstreamtest.Account{"one": b.Account("one", 0.20), "two": b.Account("two", 0.20)}
	f := b.Serve()
	turn := functiontest.Request{Session: "pinned"}
	var home string
	type calls = map[string]int
	var table []string
	for _, c := range []struct {
		kind    string
		prepare func()
		request functiontest.Request
		status  int
		pin     string
		want    calls
		why     string
	}{
		{"cold, new conversation", nil, turn, http.StatusOK, "new",
			calls{"BatchGetItem": 4, "Decrypt": 1, "UpdateItem": 5}, "data key; catalog; pin, states and credentials; claim, placement, reading; usage"},
		{"pinned", nil, turn, http.StatusOK, "kept",
			calls{"BatchGetItem": 1}, "pin and states"},
		{"new conversation", nil, functiontest.Request{Session: "new"}, http.StatusOK, "new",
			calls{"BatchGetItem": 1, "UpdateItem": 3}, "pin and states; claim, placement, reading"},
		{"without a conversation", nil, functiontest.Request{Body: []byte(`{"model":"claude-opus-5","max_tokens":1,"messages":[{"role":"user","content":"quota"}]}`)}, http.StatusOK, "none",
			calls{"BatchGetItem": 1}, "states"},
		{"pinned, touch due", func() { b.Age(2 * time.Minute) }, turn, http.StatusOK, "kept",
			calls{"BatchGetItem": 1, "UpdateItem": 1}, "pin and states; touch"},
		{"pinned, reading changed", func() { accounts[home].Queue(upstreamtest.Good(b.Limits(0.25))) }, turn, http.StatusOK, "kept",
			calls{"BatchGetItem": 1, "UpdateItem": 1}, "pin and states; reading"},
		{"count_tokens", nil, functiontest.Request{Session: "pinned", Path: "/v1/messages/count_tokens?beta=true"}, http.StatusOK, "none",
			calls{"BatchGetItem": 1}, "pin and states"},
		{"upload of a file", func() {
			for _, a := range accounts {
				a.OnPath("/v1/files", upstreamtest.Raw(http.StatusOK, http.Header{"Content-Type": {"application/json"}}, []byte(`{"id":"file_011C","type":"file"}`)))
			}
		}, functiontest.Request{Path: "/v1/files"}, http.StatusOK, "none",
			calls{"BatchGetItem": 1, "UpdateItem": 1}, "states; owner"},
		{"new, names the file", nil, functiontest.Request{Session: "file", Body: []byte(`{"model":"claude-opus-5","max_tokens":100,"messages":[{"role":"user","content":[{"type":"document","source":{"type":"file","file_id":"file_011C"}}]}]}`)}, http.StatusOK, "new",
			calls{"BatchGetItem": 1, "UpdateItem": 3}, "pin, owner and states; claim, placement, reading"},
		{"pinned, account rejects", func() {
			accounts[home].Queue(upstreamtest.FiveHourSpent(time.Now().Add(3 * time.Hour)))
		}, turn, http.StatusOK, "moved",
			calls{"BatchGetItem": 2, "UpdateItem": 5}, "pin and states; rejection, move, placement, reading; events"},
		{"key revoked or never made", nil, functiontest.Request{Key: nobodys}, http.StatusUnauthorized, "",
			calls{"BatchGetItem": 1}, "catalog, at most four times a second"},
		{"no client key by its form", nil, functiontest.Request{Key: "sk-ant-api03-somebody-elses"}, http.StatusUnauthorized, "",
			calls{}, ""},
		{"unknown path", nil, functiontest.Request{Path: "/v1/unknown"}, http.StatusNotFound, "",
			calls{}, ""},
	} {
		if c.prepare != nil {
			c.prepare()
		}
		b.AWS.Calls()
		got := f.Do(t, c.request)
		counted := b.AWS.Calls()
		for len(counted) < len(c.want) && c.status == http.StatusUnauthorized { // answered from memory, for a moment
			got, counted = f.Do(t, c.request), b.AWS.Calls()
		}
		if got.Status != c.status || got.Pin() != c.pin {
			t.Errorf("%s: got %d, pin %q (%s); want %d, %q", c.kind, got.Status, got.Pin(), got.Body, c.status, c.pin)
		}
		if fmt.Sprint(counted) != fmt.Sprint(c.want) {
			t.Errorf("%s: got calls %v, want %v", c.kind, counted, c.want)
		}
		if home == "" {
			home = got.Account()
		}
		table = append(table, fmt.Sprintf("%-26s %-50s %s", c.kind, list(counted), c.why))
	}
	if f.Started() != 1 {
		t.Errorf("got %d processes, want 1: what one has in memory is counted on", f.Started())
	}
	t.Logf("calls by kind of request:\n%s", strings.Join(table, "\n"))
}

func list(calls map[string]int) string {
	var all []string
	for name, n := range calls {
		all = append(all, fmt.Sprintf("%d %s", n, name))
	}
	slices.Sort(all)
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, ", ")
}
