package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const bareProxy = "bare proxy"

// way is one way to the upstream.
type way struct {
	name string
	*process
	client *http.Client
	cut    int // answers that broke off
}

func newWay(name string, p *process) *way {
	return &way{name: name, process: p, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true}}}
}

// body is a request of about n bytes, as Claude Code builds them: mostly text.
func body(n int, stream bool) []byte {
	head := fmt.Sprintf(`{"model":"claude-opus-5","max_tokens":1000,"stream":%v,"messages":[{"role":"user","content":"`, stream)
	text := strings.Repeat("func main() { fmt.Println(\\\"hello\\\") }\\n", max(0, n-len(head))/40)
	return []byte(head + text + `"}]}`)
}

// send makes one request and returns the time to the first byte of the answer's body.
func (w *way) send(ctx context.Context, query string, body []byte, session int) (first time.Duration, err error) {
	began := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+"/v1/messages"+query, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header = http.Header{
		"Content-Type": {"application/json"}, "Anthropic-Version": {"2023-06-01"}, "X-Api-Key": {clientKey.Reveal()},
		"User-Agent": {"bench/1"}, "X-Claude-Code-Session-Id": {fmt.Sprintf("3b1e6c1a-5d0f-4a55-9c0b-%012d", session)},
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	var one [1]byte
	if _, err := io.ReadFull(resp.Body, one[:]); err != nil {
		return 0, err
	}
	first = time.Since(began)
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return 0, err
	}
	if resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s: status %d", w.name, resp.StatusCode)
	}
	return first, nil
}

// slice is a run of requests, one after the other.
func (w *way) slice(n int, query string, body []byte) (whole, first []time.Duration, cpu time.Duration, err error) {
	before := w.cpu()
	for i := range n {
		began := time.Now()
		f, err := w.send(context.Background(), query, body, i%16)
		if errors.Is(err, io.ErrUnexpectedEOF) && w.name == bareProxy {
			w.cut++ // it loses the end of some streams; the others are measured
			continue
		}
		if err != nil {
			return nil, nil, 0, fmt.Errorf("%s, request %d: %w", w.name, i, err)
		}
		whole, first = append(whole, time.Since(began)), append(first, f)
	}
	return whole, first, (w.cpu() - before) / time.Duration(n), nil
}

// saturate runs as many requests as it can for a while and returns how many a second.
func (w *way) saturate(workers int, d time.Duration, body []byte) (float64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	var n atomic.Int64
	var failed atomic.Pointer[error]
	var wg sync.WaitGroup
	began := time.Now()
	for i := range workers {
		wg.Go(func() {
			for ctx.Err() == nil {
				if _, err := w.send(context.Background(), "", body, i); err != nil {
					failed.Store(&err)
					return
				}
				n.Add(1)
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return float64(n.Load()) / time.Since(began).Seconds(), nil
}

func quantile(d []time.Duration, q float64) time.Duration {
	d = slices.Sorted(slices.Values(d))
	return d[min(len(d)-1, int(math.Ceil(q*float64(len(d))))-1)]
}

func median[T float64 | time.Duration](v []T) T {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

// run measures everything.
func run(quick bool) error {
	dir, err := os.MkdirTemp("", "holdfast-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	up, err := start(ctx, "-role", "upstream")
	if err != nil {
		return err
	}
	defer up.stop()
	proxy, err := start(ctx, "-role", "proxy", "-upstream", up.url)
	if err != nil {
		return err
	}
	defer proxy.stop()
	gw, err := start(ctx, "-role", "gateway", "-upstream", up.url, "-dir", dir)
	if err != nil {
		return err
	}
	idle := gw.resident()
	ways := []*way{newWay("direct", up), newWay(bareProxy, proxy), newWay("gateway", gw)}

	slices, n := 12, 2000
	if quick {
		slices, n = 3, 500
	}
	fmt.Printf("%-34s %14s %14s %14s %8s\n", "", "direct", "bare proxy", "gateway", "×")
	for _, size := range []int{2 << 10, 200 << 10, 1 << 20} {
		per := max(20, n*(2<<10)/size)
		if err := small(ways, slices, per, size); err != nil {
			return err
		}
	}
	if err := streams(ways, slices, n/4); err != nil {
		return err
	}
	if err := throughput(ways, slices/2, quick); err != nil {
		return err
	}
	if err := memory(ways[2], idle); err != nil {
		return err
	}
	gw.stop()
	var starts []time.Duration
	for range 10 {
		p, err := start(ctx, "-role", "gateway", "-upstream", up.url, "-dir", dir)
		if err != nil {
			return err
		}
		starts = append(starts, p.started)
		p.stop()
	}
	fmt.Printf("%-34s %14s %14s %14s\n", "exec to listening", "", "", median(starts).Round(100*time.Microsecond))
	return nil
}

// measured are the slices' figures of one way.
type measured struct{ p50, p99, first, cpu []time.Duration }

// interleaved runs slices of every way in turn.
func interleaved(ways []*way, slices, n int, query string, b []byte) ([]measured, error) {
	m := make([]measured, len(ways))
	for s := range slices + 1 {
		for i, w := range ways {
			whole, first, cpu, err := w.slice(n, query, b)
			if err != nil {
				return nil, err
			}
			if s == 0 {
				continue // warming up
			}
			m[i].p50, m[i].p99 = append(m[i].p50, quantile(whole, 0.5)), append(m[i].p99, quantile(whole, 0.99))
			m[i].first, m[i].cpu = append(m[i].first, quantile(first, 0.5)), append(m[i].cpu, cpu)
		}
	}
	return m, nil
}

func small(ways []*way, slices, n, size int) error {
	m, err := interleaved(ways, slices, n, "", body(size, false))
	if err != nil {
		return err
	}
	label := fmt.Sprintf("%d KiB request", size>>10)
	row(label+", p50", m[0].p50, m[1].p50, m[2].p50)
	added(label+", added p50", m, func(m measured) time.Duration { return median(m.p50) })
	added(label+", added p99", m, func(m measured) time.Duration { return median(m.p99) })
	row(label+", CPU", nil, m[1].cpu, m[2].cpu)
	return nil
}

// row prints medians, and the gateway's in multiples of the bare proxy's.
func row(label string, direct, proxy, gateway []time.Duration) {
	text := ""
	if direct != nil {
		text = median(direct).Round(100 * time.Nanosecond).String()
	}
	p, g := median(proxy), median(gateway)
	fmt.Printf("%-34s %14s %14s %14s %8.2f\n", label, text, p.Round(100*time.Nanosecond), g.Round(100*time.Nanosecond), float64(g)/float64(p))
}

// added prints what proxy and gateway add to the direct call.
func added(label string, m []measured, of func(measured) time.Duration) {
	p, g := of(m[1])-of(m[0]), of(m[2])-of(m[0])
	fmt.Printf("%-34s %14s %14s %14s %8.2f\n", label, "", p.Round(100*time.Nanosecond), g.Round(100*time.Nanosecond), float64(g)/float64(p))
}

func streams(ways []*way, slices, n int) error {
	m, err := interleaved(ways, slices, n, "?deltas=50", body(2<<10, true))
	if err != nil {
		return err
	}
	row("stream of 50 events, first byte", m[0].first, m[1].first, m[2].first)
	row("stream of 50 events, CPU", nil, m[1].cpu, m[2].cpu)
	if cut := ways[1].cut; cut > 0 {
		fmt.Printf("%-34s %14s %14d\n", "streams broken off", "", cut)
	}
	return nil
}

func throughput(ways []*way, slices int, quick bool) error {
	d := 2 * time.Second
	if quick {
		d /= 4
	}
	rates := make([][]float64, len(ways))
	for range slices {
		for i, w := range ways {
			r, err := w.saturate(32, d, body(2<<10, false))
			if err != nil {
				return err
			}
			rates[i] = append(rates[i], r)
		}
	}
	p, g := median(rates[1]), median(rates[2])
	fmt.Printf("%-34s %12.0f/s %12.0f/s %12.0f/s %8.2f\n", "requests at saturation", median(rates[0]), p, g, g/p)
	return nil
}

// memory opens streams with large requests and looks at what each one holds.
func memory(w *way, idle int64) error {
	const streams = 100
	fmt.Printf("%-34s %14s %14s %10.1f MiB\n", "resident, idle after start", "", "", float64(idle)/(1<<20))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	before := w.resident()
	b := body(200<<10, true)
	var wg sync.WaitGroup
	for i := range streams {
		wg.Go(func() { _, _ = w.send(ctx, "?deltas=5&hold=1m", b, i) })
	}
	deadline := time.Now().Add(3 * time.Second)
	peak := before
	for time.Now().Before(deadline) {
		peak = max(peak, w.resident())
		time.Sleep(50 * time.Millisecond)
	}
	cancel()
	wg.Wait()
	fmt.Printf("%-34s %14s %14s %10.0f KiB\n", "resident per open stream, 200 KiB", "", "", float64(peak-before)/streams/1024)
	return nil
}
