package refresh_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/credential"
	"holdfast/internal/provider"
	"holdfast/internal/store"
	"holdfast/internal/store/seal"
	"holdfast/internal/store/sqlitestore"
	"holdfast/internal/store/vault"
	"holdfast/internal/test/issuertest"
	"holdfast/internal/upkeep/presence"
	"holdfast/internal/upkeep/refresh"
)

// roleEnv makes the test binary a process that renews on command.
const roleEnv = "HOLDFAST_TEST_ROLE"

func TestMain(m *testing.M) {
	if os.Getenv(roleEnv) != "" {
		if err := renewOnCommand(os.Args[1], os.Args[2], os.Args[3]); err != nil {
			fmt.Println("refused:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// renewOnCommand is the other process, on a data directory, an issuer, and a directory of the
// processes of its machine. It reads
// commands from its standard input and answers each with a line.
func renewOnCommand(dir, issuer, machine string) error {
	backend, err := sqlitestore.Open(dir)
	if err != nil {
		return err
	}
	box, err := seal.New([32]byte{7})
	if err != nil {
		return err
	}
	holding := &holding{Backend: backend}
	c := &clock{}
	o := refresh.Options{
		Store:    store.New(holding).Within(20 * time.Second),
		OpenBox:  func(context.Context) (refresh.Box, error) { return box, nil },
		Renewers: map[account.Provider]provider.Renewer{account.Anthropic: renewer{}},
		Now:      c.now, Version: "test", Wait: time.Minute, Presence: presence.In(machine),
	}
	r, err := refresh.New(o)
	if err != nil {
		return err
	}
	o.Wait = time.Nanosecond
	impatient, err := refresh.New(o)
	if err != nil {
		return err
	}
	a := account.Account{ID: accountID, Name: "max", Provider: account.Anthropic, BaseURL: issuer}
	fmt.Println("ready")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var n, generation int64
		word, rest, _ := strings.Cut(in.Text(), " ")
		switch word {
		case "clock": // by how many seconds it has moved on
			_, err = fmt.Sscan(rest, &n)
			c.ahead.Store(n * int64(time.Second))
			fmt.Println("clock")
		case "hold": // the next write of a kind, before it or after it
			_, err = fmt.Sscan(rest, &holding.where, &holding.kind)
			fmt.Println("hold")
		case "renew": // with so many requests at once, and one in the background
			_, err = fmt.Sscan(rest, &n, &generation)
			fmt.Println(renewAtOnce(r, vault.Vault{Store: o.Store, Box: box}, c, a, n, generation))
		case "look": // renew once, and wait for nobody
			_, err = fmt.Sscan(rest, &generation)
			fmt.Println(told(impatient.Renew(context.Background(), a, credential.Credential{Generation: generation})))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", in.Text(), err)
		}
	}
	return backend.Close()
}

// told says in a word what Renew returned.
func told(c credential.Credential, err error) string {
	switch {
	case err == nil:
		return fmt.Sprint(c.Generation)
	case errors.Is(err, refresh.ErrOwner):
		return "owner"
	case errors.Is(err, refresh.ErrTransient):
		return "transient"
	}
	return "neither"
}

func renewAtOnce(r *refresh.Refresher, v vault.Vault, c *clock, a account.Account, n, generation int64) string {
	words := make([]string, n+1)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			words[i] = told(r.Renew(context.Background(), a, credential.Credential{Generation: generation}))
		})
	}
	all.Go(func() {
		stored, _, err := v.Load(context.Background(), a.ID)
		if err == nil && stored.Generation == generation && refresh.Due(stored, c.now()) {
			stored, err = r.Renew(context.Background(), a, stored)
		}
		words[n] = told(stored, err)
	})
	all.Wait()
	return strings.Join(words, " ")
}

// holding stops at a write, reports that it did, and never goes on.
type holding struct {
	store.Backend
	where string
	kind  store.Kind
}

func (h *holding) Put(ctx context.Context, r store.Record, cond store.Condition) (store.Record, error) {
	if h.where == "before" && r.Kind == h.kind {
		fmt.Println("held")
		select {}
	}
	stored, err := h.Backend.Put(ctx, r, cond)
	if h.where == "after" && r.Kind == h.kind && err == nil {
		fmt.Println("held")
		select {}
	}
	return stored, err
}

// process is another one, seen from the test.
type process struct {
	*testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// processes starts n on the bench's store, which is a directory, and on one machine.
func (b *bench) processes(dir string, n int) []*process {
	b.Helper()
	machine := b.TempDir()
	return b.processesOn(dir, slices.Repeat([]string{machine}, n)...)
}

// processesOn starts one on each of the machines, which are directories.
func (b *bench) processesOn(dir string, machines ...string) []*process {
	b.Helper()
	all := make([]*process, len(machines))
	for i, machine := range machines {
		cmd := exec.CommandContext(context.Background(), os.Args[0], dir, b.issuer.URL, machine)
		cmd.Env = append(os.Environ(), roleEnv+"=renew")
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			b.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			b.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		all[i] = &process{b.T, cmd, in, bufio.NewScanner(out)}
		b.Cleanup(func() {
			_ = in.Close()
			_ = cmd.Process.Signal(syscall.SIGCONT)
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
	}
	for _, p := range all {
		p.expect("ready")
	}
	return all
}

func (p *process) say(format string, args ...any) {
	p.Helper()
	if _, err := fmt.Fprintf(p.in, format+"\n", args...); err != nil {
		p.Fatal(err)
	}
}

func (p *process) hear() string {
	p.Helper()
	if !p.out.Scan() {
		p.Fatalf("the process is gone: %v", p.out.Err())
	}
	return p.out.Text()
}

func (p *process) expect(want string) {
	p.Helper()
	if got := p.hear(); got != want {
		p.Fatalf("the process said %q, want %q", got, want)
	}
}

func (p *process) signal(s syscall.Signal) {
	p.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.Fatal(err)
	}
}

// stop stops the process, and returns when all of it stands still.
func (p *process) stop() {
	p.Helper()
	p.signal(syscall.SIGSTOP)
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(p.cmd.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		p.Fatalf("stop the process: got status %v and error %v", status, err)
	}
}

// advance moves the clocks of all on.
func (b *bench) advance(d time.Duration, all ...*process) {
	b.Helper()
	b.clock.advance(d)
	for _, p := range all {
		p.say("clock %d", b.clock.ahead.Load()/int64(time.Second))
		p.expect("clock")
	}
}

// onFiles is a bench whose store is a directory.
func onFiles(t *testing.T, o issuertest.Options) (*bench, string) {
	t.Helper()
	dir := t.TempDir()
	return begin(t, o, func() store.Backend {
		backend, err := sqlitestore.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		return backend
	}), dir
}

// refresh-race: 20 requests on 5 processes at the instant of expiry, and a background
// renewal in each.
func TestRaceOfProcesses(t *testing.T) {
	const rounds = 10
	b, dir := onFiles(t, issuertest.Options{})
	all := b.processes(dir, 5)
	for round := range rounds {
		for _, p := range all {
			p.say("renew 4 %d", round+1)
		}
		for _, p := range all {
			p.expect(strings.TrimSpace(strings.Repeat(fmt.Sprint(round+2, " "), 5)))
		}
		b.advance(9*time.Hour, all...)
	}
	b.counts(issuertest.Counts{Requests: rounds, Exchanges: rounds})
	t.Logf("%d races of 20 requests and 5 background renewals on 5 processes: %d exchanges, %d tokens lost",
		rounds, b.issuer.Counts().Exchanges, b.issuer.Counts().Revoked)
}

// The holder is stopped after it sent the token, for longer than its lease, and goes on.
func TestRaceWithAFrozenProcess(t *testing.T) {
	b, dir := onFiles(t, issuertest.Options{})
	ps := b.processes(dir, 2)
	holder, other := ps[0], ps[1]
	const rounds = 3
	for round := range rounds {
		f := issuertest.Fault{Hold: make(chan struct{}), Holding: make(chan struct{})}
		b.issuer.Next(f)
		holder.say("renew 1 %d", round+1)
		<-f.Holding
		holder.stop()
		close(f.Hold)
		other.say("look %d", round+1)
		other.expect("transient")
		b.advance(9*time.Minute, other) // the lease is over long ago
		other.say("look %d", round+1)
		other.expect("transient")
		holder.signal(syscall.SIGCONT)
		holder.expect(fmt.Sprint(round+2, " ", round+2))
		other.say("renew 1 %d", round+1)
		other.expect(fmt.Sprint(round+2, " ", round+2))
		b.advance(9*time.Hour, ps...)
	}
	b.counts(issuertest.Counts{Requests: rounds, Exchanges: rounds})
	t.Logf("%d holders frozen for 9 minutes after they sent the token: %d exchanges, %d tokens lost", rounds, b.issuer.Counts().Exchanges, b.issuer.Counts().Revoked)
}

// rotated-token-lost: the holder is killed, at every step, and another goes on. It is field
// case killed-in-mid-renewal, too: on one machine the other goes on at once, so that an issuer
// which forgives for a short while does; elsewhere after 100 s.
func TestRaceWithAKilledProcess(t *testing.T) {
	const strict, short, long = 0, 2 * time.Second, 2 * time.Minute
	const elsewhere = 100 * time.Second
	kills, lost := 0, 0
	for _, c := range []struct {
		name  string
		hold  string // the command; empty: the issuer holds the answer back
		after time.Duration
		grace time.Duration
		told  string
		want  issuertest.Counts
	}{
		{"before the mark", "hold before renewal", 90 * time.Second, strict, "2", issuertest.Counts{Requests: 1, Exchanges: 1}},
		{"after the mark", "hold after renewal", 0, strict, "2", issuertest.Counts{Requests: 1, Exchanges: 1}},
		{"before the answer, with grace", "", 0, short, "2", issuertest.Counts{Requests: 2, Exchanges: 1, Repeats: 1}},
		{"before the answer, without", "", 0, strict, "owner", issuertest.Counts{Requests: 2, Exchanges: 1, Reuses: 1, Revoked: 1}},
		{"before the save, with grace", "hold before credential", 0, short, "2", issuertest.Counts{Requests: 2, Exchanges: 1, Repeats: 1}},
		// This is what cannot be helped: the new tokens were in the killed process alone.
		{"before the save, without", "hold before credential", 0, strict, "owner", issuertest.Counts{Requests: 2, Exchanges: 1, Reuses: 1, Revoked: 1}},
		{"after the save", "hold after credential", 0, strict, "2", issuertest.Counts{Requests: 1, Exchanges: 1}},
		{"elsewhere, after the mark", "hold after renewal", elsewhere, strict, "2", issuertest.Counts{Requests: 1, Exchanges: 1}},
		{"elsewhere, before the answer, with grace", "", elsewhere, long, "2", issuertest.Counts{Requests: 2, Exchanges: 1, Repeats: 1}},
		{"elsewhere, before the save, with grace", "hold before credential", elsewhere, long, "2", issuertest.Counts{Requests: 2, Exchanges: 1, Repeats: 1}},
		{"elsewhere, before the save, without", "hold before credential", elsewhere, strict, "owner", issuertest.Counts{Requests: 2, Exchanges: 1, Reuses: 1, Revoked: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, dir := onFiles(t, issuertest.Options{Grace: c.grace})
			machine := t.TempDir()
			machines := []string{machine, machine}
			if strings.HasPrefix(c.name, "elsewhere") {
				machines[1] = t.TempDir()
			}
			ps := b.processesOn(dir, machines...)
			holder, other := ps[0], ps[1]
			f := issuertest.Fault{}
			if c.hold == "" {
				f = issuertest.Fault{Hold: make(chan struct{}), Holding: make(chan struct{})}
				b.issuer.Next(f)
			} else {
				holder.say(c.hold)
				holder.expect("hold")
			}
			holder.say("renew 1 1")
			if c.hold == "" {
				<-f.Holding
			} else {
				holder.expect("held")
			}
			holder.signal(syscall.SIGKILL)
			_ = holder.cmd.Wait()
			if c.hold == "" {
				close(f.Hold)
			}
			kills++

			if c.after > 0 {
				other.say("look 1")
				other.expect("transient")
				b.advance(c.after-time.Second, other)
				other.say("look 1")
				other.expect("transient")
				b.advance(time.Second, other)
			}
			other.say("look 1")
			other.expect(c.told)
			b.counts(c.want)
			if c.told == "owner" {
				lost++
				if got := b.parked(); got != refresh.ReasonAnswerLost {
					t.Errorf("got parked %q, want %q", got, refresh.ReasonAnswerLost)
				}
			}
		})
	}
	t.Logf("%d holders killed: %d tokens lost, all of them to an issuer without grace, between the exchange and the save", kills, lost)
}
