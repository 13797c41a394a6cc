package command_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/pin"
)

// checkedJSON is what a check tells programs.
type checkedJSON struct {
	Name   string
	Plan   string
	Status struct {
		Windows []struct {
			Name        string
			Utilization float64
			ObservedAt  time.Time `json:"observed_at"`
		}
	}
	Credential struct {
		ExpiresAt time.Time `json:"expires_at"`
		Renewable bool
	}
	Look struct {
		At      *time.Time
		Trouble string
	}
	Cycles []struct {
		Window, Sibling, Verdict string
		After                    *int64 `json:"after_seconds"`
	}
	Plans struct{ Verdict string }
	Owner struct {
		Verdict    string
		SharedWith []string `json:"shared_with"`
	}
	Others struct {
		Verdict string
		Quiet   int64 `json:"quiet_seconds"`
	}
}

// weekly is a reading of the weekly window.
func weekly(before time.Duration, utilization float64, reset time.Time) func(account.State) account.State {
	return func(s account.State) account.State {
		return s.Observe(account.Reading{At: t0.Add(-before), Source: account.FromPoll, Windows: []account.WindowReading{
			{Name: account.Weekly, Utilization: utilization, HasUtilization: true, ResetAt: reset},
		}}, 0, account.Rules{})
	}
}

func TestAccountCheck(t *testing.T) {
	b := newBench(t)
	v := newVendor(t)
	v.looks = []answer{usage} // weekly 41 %, until 2027-03-08T10:00:00Z
	b.must("account", "add", "marlow", "--provider", "anthropic", "--import", b.file("a.json", goodLogin), "--base-url", v.url, "--no-check")
	b.must("account", "add", "juniper", "--provider", "anthropic", "--import", b.file("b.json", strings.ReplaceAll(goodLogin, "EXAMPLE-old", "EXAMPLE-two")), "--base-url", v.url, "--no-check")
	b.fold("juniper", weekly(time.Minute, 0.9, time.Date(2027, 3, 10, 13, 0, 0, 0, time.UTC)))
	b.fold("marlow", weekly(2*time.Hour, 0.38, time.Date(2027, 3, 8, 10, 0, 0, 0, time.UTC)))

	got := decode[checkedJSON](t, b.must("account", "check", "marlow", "--json"))
	if len(got.Status.Windows) != 2 || got.Status.Windows[1].Utilization != 0.41 || !got.Status.Windows[1].ObservedAt.Equal(t0) {
		t.Errorf("windows: got %+v, want those of the look", got.Status.Windows)
	}
	if got.Look.At == nil || !got.Look.At.Equal(t0) || got.Look.Trouble != "" {
		t.Errorf("look: got %+v", got.Look)
	}
	// 2027-03-08T10:00Z is 2d03h before 2027-03-10T13:00Z.
	if len(got.Cycles) != 1 || got.Cycles[0].Window != "weekly" || got.Cycles[0].Sibling != "juniper" || got.Cycles[0].Verdict != "offset" || *got.Cycles[0].After != -51*3600 {
		t.Errorf("cycles: got %+v", got.Cycles)
	}
	if got.Plans.Verdict != "same" || got.Owner.Verdict != "personal" || !got.Credential.Renewable || !got.Credential.ExpiresAt.Equal(t0.Add(2*time.Hour)) {
		t.Errorf("got plans %+v, owner %+v, credential %+v", got.Plans, got.Owner, got.Credential)
	}
	// It rose from 38 % to 41 % in two hours in which nobody asked for anything here.
	if got.Others.Verdict != "seen" || got.Others.Quiet != 7200 {
		t.Errorf("others: got %+v, want seen in 7200 s", got.Others)
	}
	text := b.must("account", "check", "marlow").stdout
	for _, want := range []string{
		"max; the same as the other accounts'", "window weekly        41% for 4d00h, until 2027-03-08T10:00:00Z; read just now",
		"offset: resets 2d03h before juniper", "a personal login", "good until 2027-03-04T12:00:00Z (2h00m)", "asked for just now",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the check lacks %q:\n%s", want, text)
		}
	}
	// A look that tells what was known dates it anew, though the store need not.
	b.now = func() time.Time { return t0.Add(36 * time.Second) }
	if text := b.must("account", "check", "marlow").stdout; strings.Contains(text, "read 36s ago") || strings.Count(text, "; read just now\n") != 2 {
		t.Errorf("after a look that told the same again:\n%s", text)
	}
	if got := decode[checkedJSON](t, b.must("account", "check", "marlow", "--json")).Status.Windows; !got[1].ObservedAt.Equal(t0.Add(36 * time.Second)) {
		t.Errorf("after a look that told the same again: got %+v", got)
	}
	b.now = func() time.Time { return t0 }
	asked := len(v.took())
	if r := b.must("account", "check", "marlow", "--no-look"); !strings.Contains(r.stdout, "they were not asked for") || len(v.took()) != asked {
		t.Errorf("with --no-look: asked %d times more, and said\n%s", len(v.took())-asked, r.stdout)
	}
	b.refuses(1, `no account "nobody"`, "account", "check", "nobody")
}

// What fills while requests of ours run tells nothing of others.
func TestAccountCheckOurs(t *testing.T) {
	b := newBench(t)
	v := newVendor(t)
	v.looks = []answer{usage}
	b.must("account", "add", "marlow", "--provider", "anthropic", "--import", b.file("a.json", goodLogin), "--base-url", v.url, "--no-check")
	b.fold("marlow", weekly(2*time.Hour, 0.38, time.Date(2027, 3, 8, 10, 0, 0, 0, time.UTC)))
	s := b.open()
	snap, err := s.Snapshot(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := snap.Catalog.Account("marlow")
	if _, _, err := s.ClaimPin(t.Context(), "conversation", pin.New(a, false, t0.Add(-time.Hour), time.Hour), t0.Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	shut(t, s)
	if got := decode[checkedJSON](t, b.must("account", "check", "marlow", "--json")); got.Others.Verdict != "unknown" {
		t.Errorf("others: got %+v, want unknown", got.Others)
	}
}

// Requests of ours that go by another login of the same person fill the same windows.
func TestAccountCheckOursElsewhere(t *testing.T) {
	b := newBench(t)
	v := newVendor(t)
	v.looks = []answer{usage}
	reset := time.Date(2027, 3, 8, 10, 0, 0, 0, time.UTC)
	b.must("account", "add", "marlow", "--provider", "anthropic", "--import", b.file("a.json", goodLogin), "--base-url", v.url, "--no-check")
	b.must("account", "add", "again", "--provider", "anthropic", "--import", b.file("b.json", strings.ReplaceAll(goodLogin, "EXAMPLE-old", "EXAMPLE-two")), "--base-url", v.url, "--no-check")
	same := func(s account.State) account.State { s.Organization = "org-1"; return s }
	b.fold("marlow", same)
	b.fold("marlow", weekly(2*time.Hour, 0.38, reset))
	b.fold("again", same)
	s := b.open()
	snap, err := s.Snapshot(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := snap.Catalog.Account("again")
	if _, _, err := s.ClaimPin(t.Context(), "conversation", pin.New(a, false, t0.Add(-time.Hour), time.Hour), t0.Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	shut(t, s)
	got := decode[checkedJSON](t, b.must("account", "check", "marlow", "--json"))
	if !slices.Equal(got.Owner.SharedWith, []string{"again"}) || got.Others.Verdict != "unknown" {
		t.Errorf("got shared with %q and others %+v, want again, and unknown", got.Owner.SharedWith, got.Others)
	}
}

// A check says what it could not find out, and goes on.
func TestAccountCheckWithoutLook(t *testing.T) {
	b := newBench(t)
	v := newVendor(t)
	b.must("account", "add", "marlow", "--provider", "anthropic", "--import", b.file("a.json", goodLogin), "--base-url", v.url, "--no-check")
	v.looks = []answer{busy}
	if r := b.must("account", "check", "marlow"); !strings.Contains(r.stdout, "the answer has status 429") || !strings.Contains(r.stdout, "none was read yet") {
		t.Errorf("got\n%s", r.stdout)
	}
	b.add("work")
	if r := b.must("account", "check", "work"); !strings.Contains(r.stdout, "there is nothing to ask") {
		t.Errorf("of a key: got\n%s", r.stdout)
	}
	if got := v.took(); !slices.Equal(got, []string{"look sk-ant-oat01-EXAMPLE-old"}) {
		t.Errorf("asked %q", got)
	}
	// Whoever refused is left alone for a while, by the poller and by the next check.
	if r := b.must("account", "check", "marlow"); !strings.Contains(r.stdout, "refused lately (the answer has status 429") || len(v.took()) != 1 {
		t.Errorf("again at once: asked %d times, and said\n%s", len(v.took()), r.stdout)
	}
}

// A check names what it cannot find out, in one row for each.
func TestAccountCheckUntold(t *testing.T) {
	b := newBench(t)
	b.add("work")
	if text := b.must("account", "check", "work").stdout; !strings.Contains(text, "no other account of anthropic to be aligned with") {
		t.Errorf("alone:\n%s", text)
	}
	b.add("home")
	text := b.must("account", "check", "work").stdout
	for _, want := range []string{"whether it is aligned with the other accounts cannot be told", "that it spends one allowance with another account is not known", "plan                 not known"} {
		if !strings.Contains(text, want) {
			t.Errorf("the check lacks %q:\n%s", want, text)
		}
	}
}
