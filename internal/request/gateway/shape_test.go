package gateway

import (
	"encoding/json"
	"testing"
)

func TestShapeOf(t *testing.T) {
	for text, want := range map[string]shape{
		"": undecided, " \n\t\r\n": undecided, "\ufeff": undecided, "\n\ufeff \n": undecided, "\xef\xbb": undecided,
		`{"a":1}`: document, "  \n[": document, "\ufeff{": document, "\ufeff\n {": document,
		"event: x": stream, "data:": stream, "data\n": stream, "id: 1": stream, "retry: 5": stream, ": ping": stream, "\ufeffevent:": stream, "\r\n\ndata: {": stream,
		"even": undecided, "data": undecided, "id": undecided,
		"<": neither, "\ufeff<!DOCTYPE html>": neither, "upstream connect error": neither, "events: x": neither, "dat:": neither, "retrying": neither,
		"\ufeff\ufeff{": neither, "\xef\xbbx": neither, `"text"`: neither, "null": neither, "5": neither, "error code: 1010": neither, "idle": neither, "\x00": neither,
	} {
		var b beginning
		if got := b.take([]byte(text)); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
}

// A body has the same shape however its bytes come, and JSON is never taken for anything else.
func FuzzShape(f *testing.F) {
	for _, seed := range []string{"{}", "\ufeff {", "event: a\n", "data", "\xef\xbb\xbf\xef", "upstream", "\n\n", ": c"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var at, split beginning
		want := at.take(text)
		got := undecided
		for i := range text {
			if got = split.take(text[i : i+1]); got != undecided {
				break
			}
		}
		if got != want {
			t.Errorf("%q: got %d byte by byte, want %d", text, got, want)
		}
		var o map[string]any
		if json.Unmarshal(text, &o) == nil && o != nil && want != document {
			t.Errorf("%q: got %d, want a document", text, want)
		}
	})
}

func TestTellsError(t *testing.T) {
	for text, want := range map[string]bool{
		`{}`: false, `{"error":null}`: false, "{\"error\" :\n null, \"status\":\"completed\"}": false, `{"errors":{}}`: false,
		`{"error":{}}`: true, `{"error": "x"}`: true, `{"type":"error"}`: true, `{"error":null,"x":{"error":{}}}`: true, `{"error`: false, `{"error"`: true,
	} {
		if got := tellsError([]byte(text)); got != want {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
}
