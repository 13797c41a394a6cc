package main_test

import (
	"bufio"
	"net/http"
	"strings"
	"testing"
	"time"

	"holdfast/internal/test/functiontest"
	"holdfast/internal/test/upstreamtest"
)

// TestStream: every event is with the client before the next one is sent.
func TestStream(t *testing.T) {
	b := functiontest.New(t)
	one := b.Account("one", 0.20)
	f := b.Serve()
	// Four events: the gateway may hold the opening ones back, but not longer than content.
	const before, after = 4, 6
	first, second := upstreamtest.NewGate(), upstreamtest.NewGate()
	one.Queue(upstreamtest.Good(b.Limits(0.20)).With(upstreamtest.HeldAfter(before, first), upstreamtest.HeldAfter(after, second)))

	resp, err := f.Send(t.Context(), functiontest.Request{Session: "stream", Stream: true})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream; charset=utf-8" {
		t.Fatalf("got %d %q, want 200 and the upstream's type", resp.StatusCode, resp.Header.Get("Content-Type"))
	}
	events := bufio.NewReader(resp.Body)
	read := func(n int) (last string) {
		t.Helper()
		for range n {
			last = ""
			for !strings.HasSuffix(last, "\n\n") {
				line, err := events.ReadString('\n')
				if last += line; err != nil {
					t.Fatalf("the stream ended after %q: %v", last, err)
				}
			}
		}
		return last
	}
	read(before)
	first.Release()
	read(after - before)
	second.Release()
	for {
		if last := read(1); strings.HasPrefix(last, "event: message_stop\n") {
			break
		}
	}
	if rest, err := events.ReadString('\n'); rest != "" || err == nil {
		t.Errorf("after the last event: got %q, want the end", rest)
	}
}

// TestConversation: what is known of a conversation is in the table alone.
func TestConversation(t *testing.T) {
	b := functiontest.New(t)
	accounts := map[string]*upstreamtest.Account{"one": b.Account("one", 0.20), "two": b.Account("two", 0.20)}
	f := b.Serve()
	turn := functiontest.Request{Session: "a conversation", Stream: true}
	home := f.Served(t, turn)
	if home.Pin() != "new" {
		t.Errorf("first turn: got pin %q, want new", home.Pin())
	}
	other := map[string]string{"one": "two", "two": "one"}[home.Account()]
	// From here on the other account is the better one for whoever is new.
	accounts[home.Account()].Always(upstreamtest.Good(b.Limits(0.70)))
	kept := func(what string) {
		t.Helper()
		if got := f.Served(t, turn); got.Account() != home.Account() || got.Pin() != "kept" {
			t.Errorf("%s: got account %s, pin %s; want account %s, kept", what, got.Account(), got.Pin(), home.Account())
		}
	}
	kept("second turn")
	for range 3 {
		f.Replace()
		kept("turn at a new process")
	}
	if got := f.Started(); got != 4 {
		t.Errorf("got %d processes, want one for each replacement", got)
	}
	if got := f.Served(t, functiontest.Request{Session: "another"}); got.Account() != other || got.Pin() != "new" {
		t.Errorf("another conversation: got account %s, pin %s; want account %s, new", got.Account(), got.Pin(), other)
	}
}

// TestRejectionMoves: the spent account's conversation goes to another one, once and for
// all, whoever serves it.
func TestRejectionMoves(t *testing.T) {
	b := functiontest.New(t)
	accounts := map[string]*upstreamtest.Account{"one": b.Account("one", 0.20), "two": b.Account("two", 0.20)}
	f := b.Serve()
	turn := functiontest.Request{Session: "a conversation"}
	home := f.Served(t, turn).Account()
	other := map[string]string{"one": "two", "two": "one"}[home]
	accounts[home].Queue(upstreamtest.FiveHourSpent(time.Now().Add(3 * time.Hour)))
	if got := f.Served(t, turn); got.Account() != other || got.Pin() != "moved" {
		t.Errorf("rejected turn: got account %s, pin %s; want account %s, moved", got.Account(), got.Pin(), other)
	}
	f.Replace()
	if got := f.Served(t, turn); got.Account() != other || got.Pin() != "kept" {
		t.Errorf("turn at a new process: got account %s, pin %s; want account %s, kept", got.Account(), got.Pin(), other)
	}
	if got := f.Served(t, functiontest.Request{Session: "another"}); got.Account() != other {
		t.Errorf("another conversation: got account %s, want %s, because %s cools", got.Account(), other, home)
	}
	if got := len(accounts[home].Requests()); got != 2 {
		t.Errorf("the account that cools: got %d requests, want 2", got)
	}
}
