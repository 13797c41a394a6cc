package functionurl_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/internal/aws/functionurl"
)

// cost is what the function's process has used so far.
type cost struct {
	CPU  time.Duration
	Peak int // resident KiB, where /proc tells
}

// answerCost holds the body once, as the gateway does, and answers with the process's cost.
func answerCost(w http.ResponseWriter, r *http.Request) {
	if n := r.ContentLength; n > 0 {
		_, _ = io.ReadFull(r.Body, make([]byte, n))
	} else {
		_, _ = io.ReadAll(r.Body)
	}
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	c := cost{CPU: time.Duration(u.Utime.Nano() + u.Stime.Nano())}
	status, _ := os.ReadFile("/proc/self/status") // ru_maxrss has that of the process before exec, too
	if _, after, found := strings.Cut(string(status), "VmHWM:"); found {
		_, _ = fmt.Sscan(after, &c.Peak)
	}
	_ = json.NewEncoder(w).Encode(c)
}

// BenchmarkRequest is a request through the front and a process of the function: this
// project's and one by lambdaurl. cpu-ms/op and peak-MB are the function's alone.
func BenchmarkRequest(b *testing.B) {
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	for _, size := range []int{20_000, 500_000, 5_000_000} {
		body := []byte(strings.Repeat(`{"type":"text","text":"if a < b && c > d {\n\treturn \"x\"\n}"},`, size/60+1)[:size])
		for _, kind := range []string{"serves", "stock"} {
			b.Run(fmt.Sprintf("%dKB/%s", size/1000, kind), func(b *testing.B) {
				front, err := functionurl.New(functionurl.Options{Binary: self, Env: append(os.Environ(), asFunction+"="+kind)})
				if err != nil {
					b.Fatal(err)
				}
				defer front.Close()
				s := httptest.NewServer(front)
				defer s.Close()
				ask := func() (c cost) {
					resp, err := http.Post(s.URL+"/cost", "application/json", bytes.NewReader(body))
					if err != nil {
						b.Fatal(err)
					}
					defer resp.Body.Close()
					if err := json.NewDecoder(resp.Body).Decode(&c); err != nil {
						b.Fatal(err)
					}
					return c
				}
				ask()
				before := ask()
				b.ResetTimer()
				var after cost
				for range b.N {
					after = ask()
				}
				b.ReportMetric(float64(after.CPU-before.CPU)/float64(time.Millisecond)/float64(b.N), "cpu-ms/op")
				b.ReportMetric(float64(after.Peak)/1000, "peak-MB")
			})
		}
	}
}

// BenchmarkColdStart is the time from exec to the first poll, of a process that is this
// test's binary.
func BenchmarkColdStart(b *testing.B) {
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	for _, kind := range []string{"serves", "stock"} {
		b.Run(kind, func(b *testing.B) {
			polled := make(chan struct{})
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			s := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				polled <- struct{}{}
				<-r.Context().Done()
			})}
			go func() { _ = s.Serve(listener) }()
			defer s.Close()
			for range b.N {
				cmd := exec.Command(self)
				cmd.Env = append(os.Environ(), asFunction+"="+kind, "AWS_LAMBDA_RUNTIME_API="+listener.Addr().String())
				if err := cmd.Start(); err != nil {
					b.Fatal(err)
				}
				<-polled
				b.StopTimer()
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
				b.StartTimer()
			}
		})
	}
}
