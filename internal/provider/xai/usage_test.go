package xai_test

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"holdfast/internal/core/account"
	"holdfast/internal/provider/xai"
)

// told says what a reading of one window says: NAME UTILIZATION|? RESET [overage].
func told(t *testing.T, r account.Reading, at time.Time) string {
	t.Helper()
	if len(r.Windows) != 1 || !r.At.Equal(at) || r.Source != account.FromPoll || r.Claim != "" || r.Organization != "" || r.Overage.Charged {
		t.Fatalf("got %+v, want one window of a poll at %v", r, at)
	}
	w := r.Windows[0]
	if w.Status != "" || !w.HasUtilization && w.Utilization != 0 {
		t.Fatalf("got %+v, want no verdict", w)
	}
	full := "?"
	if w.HasUtilization {
		full = fmt.Sprintf("%.6g", math.Round(w.Utilization*1e6)/1e6)
	}
	out := w.Name + " " + full + " " + w.ResetAt.UTC().Format(time.RFC3339Nano)
	if r.Overage.Available {
		out += " overage"
	}
	return out
}

func TestUsageCaptures(t *testing.T) {
	want := map[string]string{
		"usage-2026-07":      "weekly 0.04 2026-07-14T04:17:34.673127Z",
		"usage-2026-09-zero": "weekly 0 2026-09-14T20:59:12Z",
	}
	seen := 0
	for _, c := range loadCaptures(t) {
		if want[c.Name] == "" {
			continue
		}
		seen++
		r, err := xai.Usage(c.Body, c.Recorded)
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
		} else if got := told(t, r, c.Recorded); got != want[c.Name] {
			t.Errorf("%s: got %s, want %s", c.Name, got, want[c.Name])
		}
		// An answer that is cut off anywhere is refused.
		for n := range len(strings.TrimRight(string(c.Body), "\n")) {
			if r, err := xai.Usage(c.Body[:n], c.Recorded); err == nil {
				t.Fatalf("%s: the first %d bytes gave %+v, want an error", c.Name, n, r)
			}
		}
	}
	if seen != len(want) {
		t.Errorf("got %d captures of usage, want %d", seen, len(want))
	}
}

func TestUsage(t *testing.T) {
	const week = `"currentPeriod":{"type":"USAGE_PERIOD_TYPE_WEEKLY","start":"2027-03-01T00:00:00Z","end":"2027-03-08T00:00:00Z"}`
	for _, c := range []struct {
		name, config, want string // want empty: an error
	}{
		{"two products, one without a percent", week + `,"creditUsagePercent":49.0,"productUsage":[{"product":"GrokBuild","usagePercent":49.0},{"product":"GrokChat"}]`, "weekly 0.49 2027-03-08T00:00:00Z"},
		{"an absent figure is 0, whatever a product says", week + `,"productUsage":[{"product":"GrokBuild","usagePercent":49.0}]`, "weekly 0 2027-03-08T00:00:00Z"},
		{"null is absent", week + `,"creditUsagePercent":null`, "weekly 0 2027-03-08T00:00:00Z"},
		{"zero that is told", week + `,"creditUsagePercent":0`, "weekly 0 2027-03-08T00:00:00Z"},
		{"above the cap", week + `,"creditUsagePercent":103.5`, "weekly 1.035 2027-03-08T00:00:00Z"},
		{"numeric string", week + `,"creditUsagePercent":"12.5"`, "weekly 0.125 2027-03-08T00:00:00Z"},
		{"an unreadable figure is dropped alone", week + `,"creditUsagePercent":"lots"`, "weekly ? 2027-03-08T00:00:00Z"},
		{"NaN", week + `,"creditUsagePercent":"NaN"`, "weekly ? 2027-03-08T00:00:00Z"},
		{"infinite", week + `,"creditUsagePercent":"Infinity"`, "weekly ? 2027-03-08T00:00:00Z"},
		{"negative", week + `,"creditUsagePercent":-1`, "weekly ? 2027-03-08T00:00:00Z"},
		{"an object for a figure", week + `,"creditUsagePercent":{}`, "weekly ? 2027-03-08T00:00:00Z"},
		{"bare WEEKLY", `"currentPeriod":{"type":"WEEKLY","end":"2027-03-08T00:00:00Z"}`, "weekly 0 2027-03-08T00:00:00Z"},
		{"monthly", `"currentPeriod":{"type":"USAGE_PERIOD_TYPE_MONTHLY","start":"2027-03-01T00:00:00Z","end":"2027-04-01T00:00:00Z"},"creditUsagePercent":20`, "30d 0.2 2027-04-01T00:00:00Z"},
		{"the kind counts before the length", `"currentPeriod":{"type":"WEEKLY","start":"2027-03-01T00:00:00Z","end":"2027-04-01T00:00:00Z"}`, "weekly 0 2027-04-01T00:00:00Z"},
		{"the kind as a number", `"currentPeriod":{"type":1,"start":"2027-03-01T00:00:00Z","end":"2027-03-08T00:00:00Z"}`, "30d 0 2027-03-08T00:00:00Z"},
		{"a week by its length", `"currentPeriod":{"start":"2027-03-01T00:00:00.25Z","end":"2027-03-08T00:00:00.25+00:00"}`, "weekly 0 2027-03-08T00:00:00.25Z"},
		{"a short month by its length", `"currentPeriod":{"type":"NEW","start":"2027-02-01T00:00:00Z","end":"2027-03-01T00:00:00Z"}`, "30d 0 2027-03-01T00:00:00Z"},
		{"a new length", `"currentPeriod":{"start":"2027-03-04T00:00:00Z","end":"2027-03-06T00:00:00Z"}`, "2d 0 2027-03-06T00:00:00Z"},
		{"by the billing period alone", `"creditUsagePercent":4,"billingPeriodStart":"2027-03-01T00:00:00Z","billingPeriodEnd":"2027-04-01T00:00:00Z"`, "30d 0.04 2027-04-01T00:00:00Z"},
		{"a billing period's end alone, near", `"billingPeriodEnd":"2027-03-08T00:00:00Z"`, "weekly 0 2027-03-08T00:00:00Z"},
		{"a billing period's end alone, far", `"billingPeriodEnd":"2027-04-01T00:00:00Z"`, "30d 0 2027-04-01T00:00:00Z"},
		{"an unreadable end beside a good one", `"currentPeriod":{"type":"WEEKLY","end":"soon"},"creditUsagePercent":4,"billingPeriodEnd":"2027-03-08T00:00:00Z"`, "weekly 0.04 2027-03-08T00:00:00Z"},
		{"another zone", `"currentPeriod":{"type":"WEEKLY","end":"2027-03-08T02:00:00+02:00"}`, "weekly 0 2027-03-08T00:00:00Z"},
		{"an odd member is dropped alone", week + `,"creditUsagePercent":4,"isUnifiedBillingUser":"yes","onDemandCap":7,"productUsage":"none"`, "weekly 0.04 2027-03-08T00:00:00Z"},

		{"on demand", week + `,"creditUsagePercent":100,"onDemandCap":{"val":500},"onDemandUsed":{"val":"120"}`, "weekly 1 2027-03-08T00:00:00Z overage"},
		{"on demand, used up", week + `,"creditUsagePercent":100,"onDemandCap":{"val":"500"},"onDemandUsed":{"val":500}`, "weekly 1 2027-03-08T00:00:00Z"},
		{"on demand, nothing used", week + `,"onDemandCap":{"val":"500"},"onDemandUsed":{}`, "weekly 0 2027-03-08T00:00:00Z overage"},
		{"prepaid", week + `,"creditUsagePercent":100,"prepaidBalance":{"val":"-1000"}`, "weekly 1 2027-03-08T00:00:00Z overage"},
		{"nothing prepaid", week + `,"prepaidBalance":{}`, "weekly 0 2027-03-08T00:00:00Z"},

		{"no reset", `"creditUsagePercent":4.0,"currentPeriod":{"type":"USAGE_PERIOD_TYPE_WEEKLY"}`, ""},
		{"no reset that can be read", `"creditUsagePercent":4.0,"currentPeriod":{"type":"WEEKLY","end":"2027-03-08"},"billingPeriodEnd":"0"`, ""},
		{"a length is no reset", `"currentPeriod":{"end":"6m0s"}`, ""},
		{"the year 1", `"currentPeriod":{"end":"0001-01-01T00:00:00Z"}`, ""},
		{"nothing", ``, ""},
		{"the older shape", `"monthlyLimit":{"val":0},"used":{"val":14},"billingPeriodEnd":"2027-04-01T00:00:00Z"`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := xai.Usage([]byte(`{"config":{`+c.config+`}}`), t0)
			got := ""
			if err == nil {
				got = told(t, r, t0)
			} else if len(r.Windows) > 0 {
				t.Errorf("got %+v beside an error", r)
			}
			if got != c.want {
				t.Errorf("got %q (%v), want %q", got, err, c.want)
			}
		})
	}
}

func TestUsageOfSomethingElse(t *testing.T) {
	for _, body := range []string{"", "null", "[]", `""`, "{}", `{"config":null}`, `{"config":[]}`, "<html>", `{"error":"Invalid or expired credentials (auth_kind=bearer)"}`, `{"config":{"currentPeriod":{"end":"2027-03-08T00:00:00Z"}}} more`} {
		if r, err := xai.Usage([]byte(body), t0); err == nil {
			t.Errorf("%s: got %+v, want an error", body, r)
		}
	}
}

// Answers of GetGrokCreditsConfig. The first is captured, the others made for the same
// account over a week.
const (
	grpcMonthly = "0000000041" + grpcMonthlyMessage
	// percent 1.222, products 1.2127 and 0.0093, June 2026
	grpcMonthlyMessage = "0a3f0d7f6a9c3f12001a002206088097f3d0062a060880b191d2063a07080215a9389b3f3a07080115d6ea183c421208011206088097f3d0061a060880b191d206"
	// percent 42.5, products 40 and 2.5
	grpcWeekly = "000000005d0a5b0d00002a4212001a00220c08d0d4c4d5061080cab5ee012a0c08d0c9e9d5061080cab5ee013a07080215000020423a0708041500002040421e0802120c08d0d4c4d5061080cab5ee011a0c08d0c9e9d5061080cab5ee01580162008000000010677270632d7374617475733a20300d0a"
	// the same week without a total
	grpcUnused = "000000004a0a4812001a00220c08d0d4c4d5061080cab5ee012a0c08d0c9e9d5061080cab5ee013a020802421e0802120c08d0d4c4d5061080cab5ee011a0c08d0c9e9d5061080cab5ee01580162008000000010677270632d7374617475733a20300d0a"
	// a trailer alone
	grpcRefused = "8000000069677270632d7374617475733a2031360d0a677270632d6d6573736167653a204e6f25323063726564656e7469616c7325323070726573656e7465642e253230253542574b453d756e61757468656e746963617465643a6e6f2d63726564656e7469616c732535440d0a"
)

func fromHex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Parts of messages, put together by hand.
func frame(flag byte, content []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{flag}, uint32(len(content))), content...)
}

func member(number protowire.Number, content ...byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), content)
}

func varint(number protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.VarintType), v)
}

func float(number protowire.Number, v float32) []byte {
	return protowire.AppendFixed32(protowire.AppendTag(nil, number, protowire.Fixed32Type), math.Float32bits(v))
}

func join(parts ...[]byte) []byte {
	var b []byte
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

func TestUsageGRPC(t *testing.T) {
	ok := frame(0x80, []byte("grpc-status: 0\r\n"))
	const end = 1804464000 // 2027-03-08T00:00:00Z: t0 + 3d14h
	stamp := func(seconds uint64) []byte { return varint(1, seconds) }
	weekly := member(8, join(varint(1, 2), member(2, stamp(end-604800)...), member(3, stamp(end)...))...)
	message := func(parts ...[]byte) []byte { return member(1, join(parts...)...) }
	for _, c := range []struct {
		name string
		b    []byte
		want string // empty: an error
	}{
		{"captured", fromHex(t, grpcMonthly), "30d 0.01222 2026-07-01T00:00:00Z"},
		{"captured, without a frame", fromHex(t, grpcMonthlyMessage), "30d 0.01222 2026-07-01T00:00:00Z"},
		{"weekly", fromHex(t, grpcWeekly), "weekly 0.425 2026-09-28T13:00:00.5Z"},
		{"nothing used", fromHex(t, grpcUnused), "weekly 0 2026-09-28T13:00:00.5Z"},
		{"the trailer's names in upper case", join(frame(0, message(float(1, 50), weekly)), frame(0x80, []byte("Grpc-Status:0\r\n"))), "weekly 0.5 2027-03-08T00:00:00Z"},
		{"a product's float is no total", join(frame(0, message(member(7, join(varint(1, 2), float(2, 46))...), weekly)), ok), "weekly 0 2027-03-08T00:00:00Z"},
		{"the total behind the rest", join(frame(0, message(weekly, member(7, float(2, 46)...), float(1, 50))), ok), "weekly 0.5 2027-03-08T00:00:00Z"},
		{"an end of billing alone", join(frame(0, message(float(1, 50), member(4, stamp(end-31*86400)...), member(5, stamp(end)...))), ok), "30d 0.5 2027-03-08T00:00:00Z"},
		{"fields that are new", join(frame(0, join(varint(9, 1), message(varint(9, 7), member(10, 1, 2, 3), weekly))), ok), "weekly 0 2027-03-08T00:00:00Z"},
		{"on demand", join(frame(0, message(float(1, 100), member(2, varint(1, 500)...), member(3), weekly)), ok), "weekly 1 2027-03-08T00:00:00Z overage"},
		{"prepaid", join(frame(0, message(float(1, 100), weekly, member(12, varint(1, math.MaxUint64-999)...))), ok), "weekly 1 2027-03-08T00:00:00Z overage"},
		{"NaN is dropped alone", join(frame(0, message(float(1, float32(math.NaN())), weekly)), ok), "weekly ? 2027-03-08T00:00:00Z"},
		{"infinite is dropped alone", join(frame(0, message(float(1, float32(math.Inf(1))), weekly)), ok), "weekly ? 2027-03-08T00:00:00Z"},
		{"negative is dropped alone", join(frame(0, message(float(1, -4), weekly)), ok), "weekly ? 2027-03-08T00:00:00Z"},
		{"another type is dropped alone", join(frame(0, message(varint(1, 4), weekly)), ok), "weekly ? 2027-03-08T00:00:00Z"},

		{"nothing", nil, ""},
		{"an empty message", join(frame(0, nil), ok), ""},
		{"no message", ok, ""},
		{"refused", fromHex(t, grpcRefused), ""},
		{"refused behind a message", join(frame(0, message(float(1, 50), weekly)), frame(0x80, []byte("grpc-status: 4\r\n"))), ""},
		{"a trailer without a status", join(frame(0, message(weekly)), frame(0x80, []byte("x: y\r\n"))), ""},
		{"a status that is not a number", join(frame(0, message(weekly)), frame(0x80, []byte("grpc-status: fine\r\n"))), ""},
		{"no reset", join(frame(0, message(float(1, 50), member(8, varint(1, 2)...))), ok), ""},
		{"a reset of 0", join(frame(0, message(float(1, 50), member(8, join(varint(1, 2), member(3))...))), ok), ""},
		{"a reset before the year 1", join(frame(0, message(float(1, 50), member(5, stamp(math.MaxUint64)...))), ok), ""},
		{"compressed", join(frame(1, message(weekly)), ok), ""},
		{"an unknown flag", join(frame(2, message(weekly)), ok), ""},
		{"two messages", join(frame(0, message(weekly)), frame(0, message(weekly)), ok), ""},
		{"a message behind the trailer", join(ok, frame(0, message(weekly))), ""},
		{"behind the trailer", join(frame(0, message(weekly)), ok, []byte{0}), ""},
		{"a field that is cut off", join(frame(0, message(weekly, []byte{0x0d, 0, 0})), ok), ""},
		{"a length that is too long", join(frame(0, []byte{0x0a, 0x7f, 0x0d}), ok), ""},
		{"JSON", []byte(`{"config":{}}`), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := xai.UsageGRPC(c.b, t0)
			got := ""
			if err == nil {
				got = told(t, r, t0)
			} else if len(r.Windows) > 0 {
				t.Errorf("got %+v beside an error", r)
			}
			if got != c.want {
				t.Errorf("got %q (%v), want %q", got, err, c.want)
			}
		})
	}
}

// Cut off anywhere but between its frames, an answer is an error and never a 0.
func TestUsageGRPCCutOff(t *testing.T) {
	for _, text := range []string{grpcMonthly, grpcWeekly, grpcUnused, grpcMonthlyMessage} {
		whole := fromHex(t, text)
		first := len(whole) // where a message stands alone
		if whole[0] == 0 {
			first = 5 + int(binary.BigEndian.Uint32(whole[1:5]))
		}
		for n := range whole {
			if n == first {
				continue
			}
			if r, err := xai.UsageGRPC(whole[:n], t0); err == nil {
				t.Errorf("%d of %d bytes: got %+v, want an error", n, len(whole), r)
			}
		}
	}
}

func TestCallStatus(t *testing.T) {
	_, err := xai.UsageGRPC(fromHex(t, grpcRefused), t0)
	var refused *xai.StatusError
	if !errors.As(err, &refused) || refused.Code != 16 || refused.Message != "No credentials presented. [WKE=unauthenticated:no-credentials]" {
		t.Errorf("in a trailer: got %v, want status 16 with its message", err)
	}
	for _, c := range []struct {
		name, status, message string
		want                  int // -1: no error; -2: an error that is no refusal
		said                  string
	}{
		{"nothing said", "", "", -1, ""},
		{"well", "0", "", -1, ""},
		{"a team's", "9", "No%20personal%20team", 9, "No personal team"},
		{"not encoded as it should be", "7", "100% bad", 7, "100% bad"},
		{"not a number", "fine", "", -2, ""},
		{"negative", "-1", "", -2, ""},
	} {
		err := xai.CallStatus(http.Header{"Grpc-Status": {c.status}, "Grpc-Message": {c.message}})
		var s *xai.StatusError
		switch {
		case c.want == -1 && err != nil, c.want == -2 && (err == nil || errors.As(err, &s)):
			t.Errorf("%s: got %v", c.name, err)
		case c.want >= 0 && (!errors.As(err, &s) || s.Code != c.want || s.Message != c.said):
			t.Errorf("%s: got %v, want status %d: %s", c.name, err, c.want, c.said)
		}
	}
}

func checkUsage(t *testing.T, r account.Reading, err error) {
	t.Helper()
	if err != nil {
		if !r.Empty() {
			t.Errorf("got %+v beside %v", r, err)
		}
		return
	}
	if len(r.Windows) != 1 || r.Source != account.FromPoll {
		t.Fatalf("got %+v, want one window of a poll", r)
	}
	w := r.Windows[0]
	if w.Name == "" || w.ResetAt.IsZero() || w.ResetAt.After(t0.AddDate(1, 0, 2)) {
		t.Errorf("got %+v, want a name and a reset within a year", w)
	}
	if !(w.Utilization >= 0) || math.IsInf(w.Utilization, 0) || (!w.HasUtilization && w.Utilization != 0) {
		t.Errorf("got %v full", w.Utilization)
	}
}

func FuzzUsage(f *testing.F) {
	f.Add(`{"config":{"currentPeriod":{"type":"WEEKLY","start":"2027-03-01T00:00:00Z","end":"2027-03-08T00:00:00Z"},"creditUsagePercent":4.0,"onDemandCap":{"val":"1"}}}`)
	f.Add(`{"config":{"creditUsagePercent":1e400,"billingPeriodEnd":"9999-12-31T23:59:59.999999999Z","prepaidBalance":{"val":{}}}}`)
	f.Add(`{"config":{"currentPeriod":{"type":2,"start":"2027-03-08T00:00:00Z","end":"2027-03-01T00:00:00Z"}}}`)
	f.Fuzz(func(t *testing.T, body string) {
		r, err := xai.Usage([]byte(body), t0)
		checkUsage(t, r, err)
	})
}

func FuzzUsageGRPC(f *testing.F) {
	for _, text := range []string{grpcMonthly, grpcMonthlyMessage, grpcWeekly, grpcUnused, grpcRefused} {
		f.Add(fromHex(f, text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := xai.UsageGRPC(b, t0)
		checkUsage(t, r, err)
	})
}
