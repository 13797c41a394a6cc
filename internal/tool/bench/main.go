// Command bench measures what a request costs through the gateway, beside a direct call
// and a bare httputil.ReverseProxy, on the same machine in the same run, interleaved.
//
//	go run ./internal/tool/bench            everything, about two minutes
//	go run ./internal/tool/bench -quick     a tenth of it
//
// Upstream, proxy and gateway are processes of their own, so that the CPU of each can be
// told apart; the load comes from this one. The gateway stands on the embedded store with
// two accounts, and every request belongs to a pinned conversation. Figures are medians
// over slices; "×" is against the bare proxy. It asserts nothing: budgets are for people.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

func main() {
	role := flag.String("role", "", "what a child process is: upstream, proxy or gateway")
	upstream := flag.String("upstream", "", "the upstream's base URL, for a child")
	dir := flag.String("dir", "", "the gateway's data directory, for a child")
	quick := flag.Bool("quick", false, "a tenth of the requests")
	flag.Parse()
	log.SetFlags(0)
	if *role != "" {
		if err := serve(*role, *upstream, *dir); err != nil {
			log.Fatal(err)
		}
		return
	}
	if err := run(*quick); err != nil {
		log.Fatal(err)
	}
}

// process is a child that serves HTTP.
type process struct {
	cmd *exec.Cmd
	url string
	// started is the time from exec to the line that says it listens.
	started time.Duration
}

func start(ctx context.Context, args ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("start %v: %w", args, err)
	}
	return &process{cmd, strings.TrimSpace(line), time.Since(began)}, nil
}

func (p *process) stop() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait() // it was killed, which its exit status shows
}

// cpu is the processor time the process has used, from the kernel's accounting in
// nanoseconds per thread.
func (p *process) cpu() time.Duration {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", p.cmd.Process.Pid))
	if err != nil {
		log.Fatal(err)
	}
	var sum time.Duration
	for _, t := range tasks {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/schedstat", p.cmd.Process.Pid, t.Name()))
		if err != nil {
			continue // the thread has ended
		}
		on, _, _ := strings.Cut(string(b), " ")
		n, err := strconv.ParseInt(on, 10, 64)
		if err != nil {
			log.Fatal(err)
		}
		sum += time.Duration(n)
	}
	return sum
}

// resident is the memory the process holds, in bytes.
func (p *process) resident() int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		log.Fatal(err)
	}
	for line := range strings.SplitSeq(string(b), "\n") {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			if err != nil {
				log.Fatal(err)
			}
			return n << 10
		}
	}
	return 0
}
