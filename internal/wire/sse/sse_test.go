package sse_test

import (
	"bytes"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/wire/sse"
)

type event struct {
	Name    string
	Data    string
	Skipped bool // too large to be held
}

// parse feeds the chunks to one Parser.
func parse(chunks ...[]byte) []event {
	var p sse.Parser
	var events []event
	for _, chunk := range chunks {
		chunk = bytes.Clone(chunk)
		p.Feed(chunk, func(name string, data []byte) {
			events = append(events, event{name, string(data), data == nil})
		})
		clear(chunk) // what was fed is the caller's again
	}
	return events
}

func eachByte(stream []byte) [][]byte {
	var chunks [][]byte
	for i := range stream {
		chunks = append(chunks, stream[i:i+1])
	}
	return chunks
}

var line = regexp.MustCompile(`[^\r\n]*(\r\n|\n|\r)`)

// reference follows the standard's text step by step (HTML, section 9.2.6), on bytes.
func reference(stream []byte) []event {
	var events []event
	var data, name string
	for _, m := range line.FindAllSubmatch(bytes.TrimPrefix(stream, []byte("\xef\xbb\xbf")), -1) {
		text := strings.TrimSuffix(string(m[0]), string(m[1]))
		if text == "" {
			if data != "" {
				e := event{Name: name, Data: strings.TrimSuffix(data, "\n")}
				if len(e.Data) > 64<<10 {
					e.Data, e.Skipped = "", true
				}
				if len(name) > 256 {
					e.Name = ""
				}
				events = append(events, e)
			}
			data, name = "", ""
			continue
		}
		field, value, _ := strings.Cut(text, ":")
		value = strings.TrimPrefix(value, " ")
		switch field { // empty for a comment
		case "event":
			name = value
		case "data":
			data += value + "\n"
		}
	}
	return events
}

// boundary says of a stream's beginning what Parser.Boundary says.
func boundary(stream []byte) bool {
	stream = bytes.TrimPrefix(stream, []byte("\xef\xbb\xbf"))
	if len(stream) == 0 {
		return true
	}
	lines := line.FindAllSubmatch(stream, -1)
	read := 0
	for _, m := range lines {
		read += len(m[0])
	}
	if read < len(stream) {
		return false
	}
	last := lines[len(lines)-1]
	for _, m := range slices.Backward(lines) {
		if string(m[0]) == string(m[1]) {
			break
		}
		if m[0][0] != ':' {
			return false
		}
	}
	if string(last[1]) != "\r" {
		return true
	}
	return len(lines) > 1 && string(lines[len(lines)-2][1]) == "\r"
}

// answer has eight events; € has three bytes, 😀 four.
var answer = []string{
	"event: message_start", `data: {"type":"message_start"}`, "",
	"event: content_block_start", `data: {"type":"content_block_start"}`, "",
	"event: ping", `data: {"type":"ping"}`, "",
	"event: content_block_delta", `data: {"text":"12 €"}`, "",
	"event: content_block_delta", `data: {"text":"😀"}`, "",
	"event: content_block_stop", `data: {"type":"content_block_stop"}`, "",
	"event: message_delta", `data: {"type":"message_delta"}`, "",
	"event: message_stop", `data: {"type":"message_stop"}`, "",
}

func answerEvents() []event {
	var events []event
	for i := 0; i < len(answer); i += 3 {
		events = append(events, event{Name: answer[i][len("event: "):], Data: answer[i+1][len("data: "):]})
	}
	return events
}

// framings are the answer in every legal form.
func framings() map[string]string {
	mixed := ""
	for i, text := range answer {
		mixed += text + [...]string{"\r\n", "\n", "\r", "\n", "\r", "\r\n", "\r", "\r\n", "\n"}[i%9]
	}
	lf := strings.Join(answer, "\n") + "\n"
	return map[string]string{
		"LF": lf, "CRLF": strings.Join(answer, "\r\n") + "\r\n", "CR": strings.Join(answer, "\r") + "\r", "mixed": mixed,
		"no space":        strings.ReplaceAll(lf, ": ", ":"),
		"byte order mark": "\xef\xbb\xbf" + lf,
		"comments":        ": hello\n\n" + strings.ReplaceAll(lf, "\ndata", "\n:\n: keep-alive\ndata"),
		"other fields":    strings.ReplaceAll(lf, "\ndata", "\nid: 7\nretry: 1000\ndatas: x\nDATA: y\neventually: z\ndata"),
		"no data":         strings.ReplaceAll(lf, "event: ping", "event: lost\n\nevent\n\n\n\nevent: ping"),
		"event last":      regexp.MustCompile(`(event.*)\n(data.*)\n`).ReplaceAllString(lf, "$2\n$1\n"),
		"cut at the end":  lf + "event: more\ndata: x\n",
	}
}

func TestSSEFraming(t *testing.T) {
	for name, stream := range framings() {
		t.Run(name, func(t *testing.T) {
			want := answerEvents()
			if name == "no space" { // a JSON text has no space behind its colons here either
				for i := range want {
					want[i].Data = strings.ReplaceAll(want[i].Data, ": ", ":")
				}
			}
			if diff := cmp.Diff(want, parse([]byte(stream))); diff != "" {
				t.Errorf("whole (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(want, parse(eachByte([]byte(stream))...)); diff != "" {
				t.Errorf("byte by byte (-want +got):\n%s", diff)
			}
			for i := range stream {
				if diff := cmp.Diff(want, parse([]byte(stream[:i]), nil, []byte(stream[i:]))); diff != "" {
					t.Fatalf("cut at %d (-want +got):\n%s", i, diff)
				}
			}
		})
	}
}

func TestEvents(t *testing.T) {
	tests := []struct {
		name, stream string
		want         []event
	}{
		{"without a name", "data: a\n\n", []event{{Data: "a"}}},
		{"two lines of data", "data: a\ndata:  b\n\n", []event{{Data: "a\n b"}}},
		{"empty data", "event: x\ndata\n\n", []event{{Name: "x"}}},
		{"empty data twice", "data:\ndata: \n\n", []event{{Data: "\n"}}},
		{"data that is a colon", "data::\n\n", []event{{Data: ":"}}},
		{"a tab is no space", "data:\ta\n\n", []event{{Data: "\ta"}}},
		{"space before the field", " data: a\n\n", nil},
		{"the name said twice", "event: a\nevent: b\ndata: x\n\n", []event{{Name: "b", Data: "x"}}},
		{"the name taken back", "event: a\nevent\ndata: x\n\n", []event{{Data: "x"}}},
		{"the name of an event without data", "event: a\n\ndata: x\n\n", []event{{Data: "x"}}},
		{"not UTF-8", "data: \xff\xe2\x82\n\n", []event{{Data: "\xff\xe2\x82"}}},
		{"a mark that is not whole", "\xef\xbbdata: a\n\ndata: b\n\n", []event{{Data: "b"}}},
		{"a mark later", "\n\xef\xbb\xbfdata: a\n\n", nil},
		{"two marks", "\xef\xbb\xbf\xef\xbb\xbfdata: a\n\n", nil},
		{"name at the limit", "event: " + strings.Repeat("n", 256) + "\ndata: a\n\n", []event{{Name: strings.Repeat("n", 256), Data: "a"}}},
		{"name over the limit", "event: " + strings.Repeat("n", 257) + "\ndata: a\n\n", []event{{Data: "a"}}},
		{"data at the limit", "data: " + strings.Repeat("d", 64<<10) + "\n\n", []event{{Data: strings.Repeat("d", 64<<10)}}},
		{
			"data over the limit that are not JSON", "event: big\ndata: " + strings.Repeat("d", 64<<10) + "\ndata:\n\nevent: next\ndata: a\n\n",
			[]event{{Name: "big", Skipped: true}, {Name: "next", Data: "a"}},
		},
		{
			"data far over the limit", "data: " + strings.Repeat("d", 3<<20) + "\ndata: a\nevent: big\n\ndata: b\n\n",
			[]event{{Name: "big", Skipped: true}, {Data: "b"}},
		},
	}
	large := `{"text":"` + strings.Repeat("x", 2<<20) + `","id":"resp_1"}`
	tests = append(tests, struct {
		name, stream string
		want         []event
	}{"JSON over the limit", "data: " + large + "\n\n", []event{{Data: `{"text":"` + strings.Repeat("x", 1<<10) + `","id":"resp_1"}`}}})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			// cmp's own diff of a megabyte would take long.
			if got := parse([]byte(tt.stream)); !cmp.Equal(tt.want, got) {
				t.Errorf("events: got %.300q, want %.300q", fmt.Sprint(got), fmt.Sprint(tt.want))
			}
			if len(tt.stream) < 1000 {
				if got := parse(eachByte([]byte(tt.stream))...); !cmp.Equal(tt.want, got) {
					t.Errorf("events byte by byte: got %q, want %q", fmt.Sprint(got), fmt.Sprint(tt.want))
				}
			}
		})
	}
}

func TestBoundary(t *testing.T) {
	tests := []struct {
		name, stream string
		want         bool
	}{
		{"nothing", "", true},
		{"a mark", "\xef\xbb\xbf", true},
		{"half a mark", "\xef\xbb", false},
		{"an event", "data: a\n\n", true},
		{"a comment that ends like one", ": a\n\n", true},
		{"blank lines", "\n\n\n", true},
		{"a field", "event: a\n", false},
		{"a comment", "data: a\n\n: b\n", true},
		{"comments at the beginning", ": a\n: b\n", true},
		{"a comment within an event", "data: a\n: b\n", false},
		{"a comment that ends with a CR", "data: a\n\n: b\r", false},
		{"a field that is not read", "data: a\n\nb: c\n", false},
		{"half a line", "data: a\n\nd", false},
		{"CRLF", "data: a\r\n\r\n", true},
		{"amid the last CRLF", "data: a\r\n\r", false},
		{"amid the first CRLF", "data: a\r", false},
		{"CR", "data: a\r\r", true},
		{"a CR after an LF", "data: a\n\r", false},
		{"only a CR", "\r", false},
		{"amid a CRLF, where there was a CR before", "data: a\r\rdata: b\r\n\r", false},
		{"a CR after an LF, where there was a CR before", "data: a\r\rdata: b\n\r", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, chunks := range [][][]byte{{[]byte(tt.stream)}, eachByte([]byte(tt.stream))} {
				var p sse.Parser
				for _, chunk := range chunks {
					p.Feed(chunk, func(string, []byte) {})
				}
				if got := p.Boundary(); got != tt.want {
					t.Errorf("Boundary after %q in %d chunks: got %v, want %v", tt.stream, len(chunks), got, tt.want)
				}
			}
		})
	}
}

// checkStream holds a Parser to the reference: whole, cut, and with comments put in.
func checkStream(t *testing.T, stream []byte, cut int) {
	t.Helper()
	want := reference(stream)
	if got := parse(stream); !cmp.Equal(want, got) {
		t.Fatalf("events of %q: got %v, want %v", stream, got, want)
	}
	if got := parse(eachByte(stream)...); !cmp.Equal(want, got) {
		t.Fatalf("events of %q byte by byte: got %v, want %v", stream, got, want)
	}
	cut = min(cut, len(stream))
	var p sse.Parser
	p.Feed(stream[:cut], func(string, []byte) {})
	beforeMark := cut == 0 && bytes.HasPrefix(stream, []byte("\xef\xbb\xbf"))
	halfMark := cut > 0 && cut < 3 && bytes.HasPrefix([]byte("\xef\xbb\xbf"), stream[:cut])
	if got, want := p.Boundary(), boundary(stream[:cut]) && !halfMark; got != want {
		t.Fatalf("Boundary after %q: got %v, want %v", stream[:cut], got, want)
	}
	if !p.Boundary() || beforeMark {
		return
	}
	kept := bytes.Join([][]byte{stream[:cut], []byte(": keep-alive\n"), stream[cut:]}, nil)
	if got := reference(kept); !cmp.Equal(want, got) {
		t.Fatalf("events of %q with a comment at %d: got %v, want %v", stream, cut, got, want)
	}
}

func FuzzParser(f *testing.F) {
	for _, stream := range framings() {
		for _, cut := range []int{0, 1, len(stream) / 3, len(stream) / 2, len(stream)} {
			f.Add([]byte(stream), cut)
		}
	}
	f.Add([]byte("data: a\r\r\n\n\r"), 9)
	f.Add([]byte("\xef\xbb\xbfdata:a\n\n"), 2)
	f.Fuzz(func(t *testing.T, stream []byte, cut int) {
		checkStream(t, stream, max(cut, 0))
	})
}

func TestEveryCut(t *testing.T) {
	for _, stream := range framings() {
		for cut := range len(stream) + 1 {
			checkStream(t, []byte(stream), cut)
		}
	}
}

func TestAllocations(t *testing.T) {
	stream := []byte(framings()["CRLF"])
	var p sse.Parser
	emit := func(string, []byte) {}
	if got := testing.AllocsPerRun(100, func() {
		p.Feed(stream[:100], emit)
		p.Feed(stream[100:], emit)
	}); got != 0 {
		t.Errorf("allocations: got %v, want 0", got)
	}
}

// heap is how many bytes are in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestMemory(t *testing.T) {
	emit := func(string, []byte) {}
	parsers := make([]sse.Parser, 50)
	large := []byte("data: " + strings.Repeat("d", 1<<20-1) + "\n\n")
	before := heap()
	for i := range parsers {
		parsers[i].Feed(large, emit)
	}
	if grown := heap() - before; grown > 8<<20 {
		t.Errorf("50 parsers after an event of 1 MiB: got %d MiB held, want less than 8", grown>>20)
	}
	before = heap()
	var events strings.Builder
	for n := range 100_000 {
		events.Reset()
		fmt.Fprintf(&events, "event: %0200d\ndata:\n\n", n)
		parsers[0].Feed([]byte(events.String()), emit)
	}
	endless := []byte("data: " + strings.Repeat("d", 1<<20))
	for range 64 {
		parsers[0].Feed(endless, emit)
		parsers[1].Feed(endless[7:], emit)
	}
	if grown := heap() - before; grown > 4<<20 {
		t.Errorf("after many names and an endless event: got %d MiB held, want less than 4", grown>>20)
	}
	runtime.KeepAlive(parsers)
}

func BenchmarkFeed(b *testing.B) {
	delta := "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" word\"}}\n\n"
	stream := []byte(strings.Repeat(delta, 100))
	var p sse.Parser
	emit := func(string, []byte) {}
	b.SetBytes(int64(len(stream)))
	b.ReportAllocs()
	for b.Loop() {
		p.Feed(stream, emit)
	}
}
