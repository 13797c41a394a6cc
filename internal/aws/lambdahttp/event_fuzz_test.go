package lambdahttp

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"
)

// TestBodyString: where it is not found, decoding is right all the same, but slow.
func TestBodyString(t *testing.T) {
	for _, event := range []string{
		`{"body":"@`,
		`{"a":"\"","b":"\\","body":"@`,
		`{"a":{"body":"no"},"b":["body","no"],"c":"body" , "body" : "@`,
	} {
		if from, found := bodyString([]byte(event)); !found || event[from] != '@' {
			t.Errorf("got %d, %v in %s, want the body found", from, found, event)
		}
	}
}

// FuzzDecode: an event that is read, is read as encoding/json reads it; one that
// encoding/json refuses is refused.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"body":"a\n\"b\\\u00e9\ud83d\ude00","isBase64Encoded":false}`,
		`{"isBase64Encoded":true,"headers":{"a":"b"},"body":"aGVsbG8="}`,
		`{"requestContext":{"http":{"method":"POST"}},"cookies":["body"],"body" : "x"}`,
		`{"\u0062ody":"x"}`, `{"body":"x","Body":"y"}`, `{"body":null}`, `{"body":"x"`, `[{"body":"x"}]`,
		`{"a":{"body":"x"},"b":"body","body":"0123456789abcdef\\0123456789abcdef"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, event []byte) {
		if !utf8.Valid(event) {
			return // encoding/json changes it
		}
		var want events.LambdaFunctionURLRequest
		wantErr := json.Unmarshal(event, &want)
		content := []byte(want.Body)
		if wantErr == nil && want.IsBase64Encoded {
			content, wantErr = base64.StdEncoding.DecodeString(want.Body)
		}
		got, gotContent, err := decode(bytes.Clone(event))
		if wantErr != nil && err == nil {
			t.Fatalf("got %q read, want %v", event, wantErr)
		}
		if err != nil {
			if wantErr == nil && err.Error() != "the event has two bodies" {
				t.Fatalf("got %v for %q, want it read", err, event)
			}
			return
		}
		if !bytes.Equal(gotContent, content) {
			t.Fatalf("got body %q of %q, want %q", gotContent, event, content)
		}
		got.Body, want.Body = "", ""
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("event differs (-want +got):\n%s", diff)
		}
	})
}
