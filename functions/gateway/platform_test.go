package main_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"holdfast/internal/aws/functionurl"
	"holdfast/internal/core/account"
	"holdfast/internal/core/credential"
	"holdfast/internal/test/functiontest"
	"holdfast/internal/test/upstreamtest"
)

// waitFrozen waits until a process stands still, as an idle one does on Lambda.
func waitFrozen(t *testing.T, pid int) {
	t.Helper()
	var stat []byte
	for until := time.Now().Add(20 * time.Second); time.Now().Before(until); runtime.Gosched() {
		var err error
		if stat, err = os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err != nil && runtime.GOOS != "linux" {
			return
		}
		if bytes.Contains(stat, []byte(") T ")) {
			return
		}
	}
	t.Fatalf("got process state %s, want it frozen", stat)
}

// TestFrozenWhileAnotherRenews is the case warm-process-hazards: a process that was frozen
// while another one renewed a login knows the old token. It hears that once, reads the new
// one, and spends no refresh token and never the old token again.
func TestFrozenWhileAnotherRenews(t *testing.T) {
	b := functiontest.New(t)
	const before, after = "sk-ant-oat01-function-before-SECRET", "sk-ant-oat01-function-after-SECRET"
	held := credential.Credential{
		Generation: 1, Access: credential.NewSecret(before), Refresh: credential.NewSecret("sk-ant-ort01-function-before-SECRET"),
		IssuedAt: time.Now().Add(-time.Hour), ExpiresAt: time.Now().Add(7 * time.Hour),
	}
	b.Login(account.Anthropic, "marlow", b.Upstream.URL, held)
	b.Key = b.ClientKey("agents")
	marlow := b.Upstream.Account("marlow", before)
	marlow.Always(upstreamtest.Good(b.Limits(0.20)))
	f := b.Serve()
	turn := functiontest.Request{Session: "frozen", Stream: true}
	f.Served(t, turn)

	waitFrozen(t, f.PIDs()[0])
	marlow.Known(after)
	next := held
	next.Generation, next.Access, next.Refresh = 2, credential.NewSecret(after), credential.NewSecret("sk-ant-ort01-function-after-SECRET")
	b.Renewed("marlow", next)

	for i := range 3 {
		if got := f.Served(t, turn); got.Account() != "marlow" || got.Pin() != "kept" {
			t.Errorf("turn %d after it: got account %q, pin %q; want marlow, kept", i, got.Account(), got.Pin())
		}
		waitFrozen(t, f.PIDs()[0])
	}
	var sent []string
	for _, r := range b.Upstream.Requests() {
		sent = append(sent, r.Path+" "+r.Credential)
	}
	const path = "/v1/messages "
	if want := []string{path + before, path + before, path + after, path + after, path + after}; !slices.Equal(sent, want) {
		t.Errorf("got upstream %q, want %q", sent, want)
	}
	if p := b.State("marlow").Parked; p != nil {
		t.Errorf("got parked %+v, want nothing held against the account", p)
	}
	if n := f.Started(); n != 1 {
		t.Errorf("got %d processes, want 1", n)
	}
}

// TestNobodyReads is the case client-gone-upstream-running, as far as the platform has a
// say in it.
func TestNobodyReads(t *testing.T) {
	for _, c := range []struct {
		name string
		told bool // the platform stops reading when the client has left
		left bool // the upstream request is given up
	}{
		{"the platform tells nothing, and the answer is read to its end", false, false},
		{"the platform stops reading", true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := functiontest.New(t)
			one := b.Account("one", 0.20)
			f := b.Serve(func(o *functionurl.Options) { o.TellLeave = c.told })
			first, second := upstreamtest.NewGate(), upstreamtest.NewGate()
			one.Queue(upstreamtest.Good(b.Limits(0.40)).With(upstreamtest.HeldAfter(5, first), upstreamtest.HeldAfter(6, second)))
			turn := functiontest.Request{Session: "left", Stream: true}
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			resp, err := f.Send(ctx, turn)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if _, err := resp.Body.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			leave()
			r := one.Requests()[0]
			if c.told && !f.PlatformSays("answer cut") {
				t.Error("the platform went on reading")
			}
			first.Release() // a write fails, if one does
			if c.left {
				<-r.Left() // while the answer is held
			}
			second.Release()
			<-r.Ended()
			if r.ClientLeft() != c.left {
				t.Errorf("got the upstream request given up %v, want %v", r.ClientLeft(), c.left)
			}
			waitFrozen(t, f.PIDs()[0])
			if got := b.State("one").Windows[account.FiveHour].Utilization; got != 0.40 {
				t.Errorf("got the window read at %v, want what the answer's headers said, 0.40", got)
			}
			if got := f.Served(t, turn); got.Pin() != "kept" || f.Started() != 1 {
				t.Errorf("afterwards: got pin %q by process %d, want kept, by the first", got.Pin(), f.Started())
			}
		})
	}
}

// TestCookies: the platform hands a client's cookies over twice, as a list and as a header,
// and takes an answer's as a list. None goes either way: they are of other sites.
func TestCookies(t *testing.T) {
	b := functiontest.New(t)
	one := b.Account("one", 0.20)
	limits := b.Limits(0.20)
	limits["Set-Cookie"] = []string{"__cf_bm=a; path=/", "_cfuvid=b; path=/"}
	one.Always(upstreamtest.Good(limits))
	got := b.Serve().Served(t, functiontest.Request{Session: "cookies", Header: http.Header{"Cookie": {"theme=dark; session=a=b=="}}})
	if cookies := got.Header["Set-Cookie"]; len(cookies) != 0 {
		t.Errorf("got cookies %q, want none of the provider's", cookies)
	}
	if cookies := one.Requests()[0].Header["Cookie"]; len(cookies) != 0 {
		t.Errorf("got cookies %q upstream, want none of the client's", cookies)
	}
}
