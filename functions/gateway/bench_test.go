package main_test

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"holdfast/internal/test/functiontest"
)

// BenchmarkWeight is the size of the program, and of its zip file.
func BenchmarkWeight(b *testing.B) { functiontest.Weigh(b, functiontest.Binary(b)) }

// BenchmarkStart is the time from exec to the first poll.
func BenchmarkStart(b *testing.B) { functiontest.Starts(b, functiontest.Binary(b)) }

// BenchmarkServe is a request of a pinned conversation from the client to the end of the
// answer: how long the function's process computes for it, and the most memory it ever had
// resident.
func BenchmarkServe(b *testing.B) {
	for _, size := range []int{20_000, 500_000, 5_000_000} {
		b.Run(fmt.Sprintf("%dKB", size/1000), func(b *testing.B) {
			bench := functiontest.New(b)
			bench.Account("one", 0.20)
			f := bench.Serve()
			turn := functiontest.Request{Session: "a conversation", Body: conversation(size)}
			for range 3 {
				f.Served(b, turn) // warm
			}
			pid := f.PIDs()[0]
			before := processor(b, pid)
			n := 0
			for b.Loop() {
				bench.Upstream.Forget()
				f.Served(b, turn)
				n++
			}
			b.ReportMetric(0, "ns/op") // of everybody on this machine
			b.ReportMetric(float64((processor(b, pid)-before).Microseconds())/1000/float64(n), "cpu-ms/op")
			b.ReportMetric(status(b, pid, "VmHWM")/1024, "peak-MB")
			if len(f.PIDs()) != 1 {
				b.Error("not all was served by one process")
			}
		})
	}
}

// conversation is a body of about so many bytes of text about source code.
func conversation(size int) []byte {
	const turn = `{"role":"user","content":[{"type":"text","text":"func (r *Relay) Run(body io.Reader) error {\n\tnow := time.Now()\n\tlog.Printf(\"at %v\", now) // about one escape in twelve bytes\n}"}]}`
	var turns []string
	for n := 0; n < size || n == 0; n += len(turn) + 1 {
		turns = append(turns, turn)
	}
	return []byte(`{"model":"claude-opus-5","max_tokens":100,"stream":true,"messages":[` + strings.Join(turns, ",") + `]}`)
}

// processor is the processor time that a process has used, by the kernel's count of a
// hundred a second.
func processor(b *testing.B, pid int) time.Duration {
	b.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	var ticks int
	for _, field := range fields[11:13] { // utime and stime
		n, err := strconv.Atoi(field)
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// status is a figure of a process's status, in kB.
func status(b *testing.B, pid int, name string) float64 {
	b.Helper()
	file, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	text, err := io.ReadAll(file)
	if err != nil {
		b.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^` + name + `:\s+(\d+) kB$`).FindSubmatch(text)
	if found == nil {
		b.Fatalf("no %s in the process's status", name)
	}
	kb, err := strconv.Atoi(string(found[1]))
	if err != nil {
		b.Fatal(err)
	}
	return float64(kb)
}
