package command_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/internal/command"
)

// pollJSON is what `poll --json` prints, by the documented names.
type pollJSON struct {
	At       time.Time `json:"at"`
	Accounts []struct {
		Name    string `json:"name"`
		Result  string `json:"result"`
		Windows []struct {
			Name        string   `json:"name"`
			Utilization *float64 `json:"utilization"`
		} `json:"windows"`
		Error  string     `json:"error"`
		NextAt *time.Time `json:"next_at"`
	} `json:"accounts"`
}

const usageOf30 = `{"five_hour":{"utilization":30,"resets_at":"2027-03-04T14:00:00Z"},"seven_day":{"utilization":41,"resets_at":"2027-03-10T10:00:00Z"}}`

// loginAt adds an account whose login is at a vendor, unproved.
func (b *bench) loginAt(name string, v *vendor) {
	b.t.Helper()
	b.must("account", "add", name, "--provider", "anthropic", "--import", b.login(name+".json", ""), "--base-url", v.url, "--no-check")
}

func TestPoll(t *testing.T) {
	b := newBench(t)
	v := newVendor(t)
	b.loginAt("marlow", v)
	b.add("key")
	v.looks = []answer{{http.StatusOK, usageOf30}}
	r := b.must("poll")
	for _, want := range []string{`marlow +anthropic +read +five-hour 30% for 4h00m, weekly 41% for 6d00h`, `key +anthropic +unwatched +no usage endpoint for keys`} {
		if !regexp.MustCompile(want).MatchString(r.stdout) {
			t.Errorf("got\n%swant a line that matches %q", r.stdout, want)
		}
	}
	if got := b.state("marlow").Windows["weekly"].Utilization; got != 0.41 {
		t.Errorf("got weekly %v, want 0.41", got)
	}

	got := decode[pollJSON](t, b.must("poll", "--json")) // whatever its turn
	if marlow := got.Accounts[0]; marlow.Result != "read" || len(marlow.Windows) != 2 || *marlow.Windows[0].Utilization != 0.30 || !marlow.NextAt.After(t0.Add(5*time.Minute-1)) {
		t.Errorf("got %+v, want both windows, and the next look in 5 minutes or a little more", marlow)
	}
	if key := got.Accounts[1]; key.Result != "unwatched" || key.Windows != nil || key.NextAt != nil {
		t.Errorf("got %+v, want nothing of a key", key)
	}
	if looks := len(v.took()); looks != 2 {
		t.Errorf("got %d looks, want 2", looks)
	}

	// One that refuses is backed off from, also when its owner asks.
	v.looks = []answer{{http.StatusTooManyRequests, `{"error":{"type":"rate_limit_error"}}`}}
	if r := b.must("poll"); !strings.Contains(r.stdout, "\nmarlow: the answer has status 429 and holds JSON\n") {
		t.Errorf("got\n%swant what the endpoint answered, on a line below", r.stdout)
	}
	if got := decode[pollJSON](t, b.must("poll", "--json")).Accounts[0]; got.Result != "backing-off" || !strings.Contains(got.Error, "status 429") {
		t.Errorf("got %+v, want it backed off from", got)
	}
	if looks := len(v.took()); looks != 3 {
		t.Errorf("got %d looks, want no more than 3", looks)
	}
	if r := b.must("status"); !strings.Contains(r.stdout, "last poll: 0s ago") || !strings.Contains(r.stdout, "marlow: its usage could not be looked up, 1 time (the answer has status 429 and holds JSON); next try ") {
		t.Errorf("the status tells neither of the poll nor of its failure:\n%s", r.stdout)
	}
}

// An interrupted round is not said to have been made.
func TestPollInterrupted(t *testing.T) {
	b := newBench(t)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	mute := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		interrupt()
		<-r.Context().Done()
	}))
	defer mute.Close()
	b.must("account", "add", "marlow", "--provider", "anthropic", "--import", b.login("marlow.json", ""), "--base-url", mute.URL, "--no-check")
	var stdout, stderr bytes.Buffer
	code := command.Run(ctx, append(b.place(), "poll"), b.options(strings.NewReader(""), &stdout, &stderr))
	if code != 1 || !strings.Contains(stderr.String(), "interrupted") || !strings.Contains(stdout.String(), "not-reached") {
		t.Errorf("got status %d, %q and %q; want it told as interrupted", code, stdout.String(), stderr.String())
	}
}

func TestPollWithoutAccounts(t *testing.T) {
	b := newBench(t)
	b.program = "bin/holdfast"
	b.must("settings", "reset", "reserve") // a directory of data, with nothing in it
	if r := b.must("poll"); !strings.Contains(r.stdout, "no accounts yet. Add one: bin/holdfast account add") {
		t.Errorf("got %q, want a sentence that there are no accounts", r.stdout)
	}
}

// TestPollWaits for a round that is running, and says that it waits.
func TestPollWaits(t *testing.T) {
	b := newBench(t)
	b.add("key")
	s := b.open()
	defer shut(t, s)
	lease, ours, err := s.TakeLease(t.Context(), "poll", "a server", t0, t0.Add(3*time.Minute))
	if err != nil || !ours {
		t.Fatalf("take the lease: %v, %v", ours, err)
	}
	said := &lines{want: regexp.MustCompile(`(Another round is running)`), got: make(chan string, 1)}
	o := b.options(strings.NewReader(""), nil, nil)
	stdout := &lines{}
	o.Stdout, o.Stderr = stdout, said
	ended := make(chan int, 1)
	go func() { ended <- command.Run(t.Context(), slices.Concat(b.place(), []string{"poll"}), o) }()
	select {
	case <-said.got:
	case code := <-ended:
		t.Fatalf("got status %d before the round ended: %s", code, said)
	}
	if err := s.ReleaseLease(t.Context(), lease, t0); err != nil {
		t.Fatal(err)
	}
	if code := <-ended; code != 0 || !strings.Contains(stdout.String(), "unwatched") {
		t.Errorf("got status %d and %q, want a round", code, stdout)
	}
}

// await waits until a line matches.
func (l *lines) await(t *testing.T, pattern string) {
	t.Helper()
	want := regexp.MustCompile(pattern)
	l.mu.Lock()
	there := want.MatchString(l.text.String())
	if !there {
		l.want = want
	}
	l.mu.Unlock()
	if there {
		return
	}
	select {
	case <-l.got:
	case <-time.After(time.Minute):
		t.Fatalf("got\n%s\nwant a line that matches %s", l, pattern)
	}
}

// TestServePolls: a server looks at usage by itself, and reports it in its status.
func TestServePolls(t *testing.T) {
	b := newBench(t)
	v := newVendor(t)
	v.looks = []answer{{http.StatusOK, usageOf30}}
	b.loginAt("marlow", v)
	s := b.serve()
	s.stderr.await(t, `("result_read":1)`)
	if code := s.stop(); code != 0 {
		t.Errorf("got status %d, want 0:\n%s", code, s.stderr)
	}
	if got := b.state("marlow").Windows["five-hour"].Utilization; got != 0.30 {
		t.Errorf("got five-hour %v, want 0.30", got)
	}
}
