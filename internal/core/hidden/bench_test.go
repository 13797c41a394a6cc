package hidden_test

import (
	"strings"
	"testing"

	"holdfast/internal/core/hidden"
)

// A request's log line, with the secrets of a dozen accounts.
func BenchmarkCleanLine(b *testing.B) {
	for i := range 12 {
		hidden.Remember("sk-ant-api03-" + strings.Repeat(string(rune('a'+i)), 90))
	}
	line := []byte(`{"time":"2027-03-04T10:00:00.000Z","level":"INFO","msg":"request","request":"` + strings.Repeat("x", 26) + `","outcome":"served","status":200,` +
		strings.Repeat(`"account":"marlow","model":"claude-opus-5",`, 10) + `"attempts":1}`)
	b.ReportAllocs()
	for b.Loop() {
		hidden.CleanLine(line)
	}
}
