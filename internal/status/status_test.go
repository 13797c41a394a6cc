package status_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/credential"
	"holdfast/internal/core/pin"
	"holdfast/internal/status"
	"holdfast/internal/store"
	"holdfast/internal/store/memstore"
	"holdfast/internal/store/seal"
	"holdfast/internal/store/vault"
)

// t0 is a quarter past, so that the hour before counts for three quarters.
var t0 = time.Date(2027, 3, 4, 10, 15, 0, 0, time.UTC)

func at(d time.Duration) *time.Time { t := t0.Add(d); return &t }

func anthropic(name string) account.Account {
	return account.Account{ID: account.ID("id-" + name), Name: name, Provider: account.Anthropic, Kind: account.Subscription}
}

func one(a account.Account, s account.State) status.Input {
	return status.Input{
		Now: t0, Catalog: catalog.Catalog{Accounts: []account.Account{a}},
		States: map[account.ID]store.StateRecord{a.ID: {State: s}},
	}
}

func blocks(list ...account.Block) account.State {
	s := account.State{Blocks: map[string]account.Block{}}
	for _, b := range list {
		s.Blocks[b.Cause+"|"+b.Family+"|"+b.Model] = b
	}
	return s
}

func TestStanding(t *testing.T) {
	draining := anthropic("marlow")
	draining.Draining = true
	spent := account.Block{Cause: account.FiveHour, Window: account.FiveHour, Since: t0.Add(-time.Minute), Until: t0.Add(time.Hour)}
	over := account.Block{Cause: account.FiveHour, Window: account.FiveHour, Since: t0.Add(-2 * time.Hour), Until: t0}
	family := account.Block{Cause: "weekly:fable", Window: "weekly:fable", Family: "fable", Since: t0.Add(-time.Minute), Until: t0.Add(48 * time.Hour)}
	parked := blocks(spent)
	parked.Parked = &account.Parked{Since: t0, Reason: "authentication_error"}

	tests := []struct {
		name    string
		account account.Account
		state   account.State
		want    status.State
		reason  string
		until   *time.Time
	}{
		{"never seen", anthropic("marlow"), account.State{}, status.Ready, "", nil},
		{"draining", draining, account.State{}, status.Draining, "", nil},
		{"cooling", anthropic("marlow"), blocks(spent), status.Cooldown, "five-hour", at(time.Hour)},
		{"draining and cooling", draining, blocks(spent), status.Cooldown, "five-hour", at(time.Hour)},
		{"parked and cooling", anthropic("marlow"), parked, status.Parked, "authentication_error", nil},
		{"its cooldown ends now", anthropic("marlow"), blocks(over), status.Ready, "", nil},
		{"only a family is blocked", anthropic("marlow"), blocks(family), status.Ready, "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := status.Of(one(tt.account, tt.state)).Accounts[0]
			if got.State != tt.want || got.Reason != tt.reason || !cmp.Equal(got.Until, tt.until) {
				t.Errorf("got %s %q %v, want %s %q %v", got.State, got.Reason, got.Until, tt.want, tt.reason, tt.until)
			}
		})
	}

	t.Run("the blocked family is listed", func(t *testing.T) {
		want := []status.BlockedModel{{Family: "fable", Reason: "weekly:fable", Until: t0.Add(48 * time.Hour)}}
		got := status.Of(one(anthropic("marlow"), blocks(family, spent))).Accounts[0].BlockedModels
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("blocked models (-want +got):\n%s", diff)
		}
	})
}

func TestWindows(t *testing.T) {
	read := t0.Add(-3 * time.Minute)
	state := account.State{ReadAt: read, Windows: map[string]account.Window{
		"weekly:fable":   {Utilization: 0.5, HasUtilization: true, ResetAt: t0.Add(72 * time.Hour), ObservedAt: read},
		account.Weekly:   {Utilization: 0.41, HasUtilization: true, ResetAt: t0.Add(72 * time.Hour), ObservedAt: read},
		account.FiveHour: {Utilization: 0.9, HasUtilization: true, ResetAt: t0, ObservedAt: read}, // resets this instant
		account.Requests: {Utilization: 0.2, HasUtilization: true, ResetAt: t0.Add(time.Second), ObservedAt: read},
		"30d":            {Status: account.Allowed, ObservedAt: read}, // no figure, no reset
	}}
	share := func(v float64) *float64 { return &v }
	want := []status.Window{
		{Name: "five-hour", Utilization: share(0), ObservedAt: read},
		{Name: "weekly", Utilization: share(0.41), ResetsAt: at(72 * time.Hour), ObservedAt: read},
		{Name: "30d", ObservedAt: read},
		{Name: "requests", Utilization: share(0.2), ResetsAt: at(time.Second), ObservedAt: read},
		{Name: "weekly:fable", Utilization: share(0.5), ResetsAt: at(72 * time.Hour), ObservedAt: read},
	}
	r := status.Of(one(anthropic("marlow"), state))
	if diff := cmp.Diff(want, r.Accounts[0].Windows); diff != "" {
		t.Errorf("windows (-want +got):\n%s", diff)
	}
	p := r.Providers[0]
	if want := 0.59; p.BestHeadroom == nil || *p.BestHeadroom != want {
		t.Errorf("best headroom: got %v, want %v", p.BestHeadroom, want)
	}
	if !cmp.Equal(p.SoonestReset, at(72*time.Hour)) {
		t.Errorf("soonest reset: got %v, want the weekly one: a per-minute limit is nothing to plan by", p.SoonestReset)
	}
}

func TestProviders(t *testing.T) {
	marlow, juniper, sorrel := anthropic("marlow"), anthropic("juniper"), anthropic("sorrel")
	bracken := account.Account{ID: "id-bracken", Name: "bracken", Provider: account.XAI, Kind: account.Key}
	at40 := account.State{ReadAt: t0, Windows: map[string]account.Window{
		account.Weekly: {Utilization: 0.4, HasUtilization: true, ResetAt: t0.Add(time.Hour), ObservedAt: t0},
	}}
	at85 := account.State{ReadAt: t0, Windows: map[string]account.Window{
		account.Weekly: {Utilization: 0.85, HasUtilization: true, ResetAt: t0.Add(2 * time.Hour), ObservedAt: t0},
	}}
	parked := account.State{Parked: &account.Parked{Reason: "billing_error"}, Windows: map[string]account.Window{
		account.Weekly: {Utilization: 0, HasUtilization: true, ResetAt: t0.Add(time.Minute), ObservedAt: t0},
	}}
	in := status.Input{
		Now: t0,
		Catalog: catalog.Catalog{
			// Owner's order: sorrel (parked), marlow (over the threshold), juniper.
			Accounts: []account.Account{bracken, sorrel, marlow, juniper},
			Policies: map[account.Provider]catalog.Policy{account.Anthropic: {Name: catalog.Order}, account.XAI: {Name: catalog.Score}},
		},
		States: map[account.ID]store.StateRecord{
			marlow.ID: {State: at85, Revision: 1}, juniper.ID: {State: at40, Revision: 1}, sorrel.ID: {State: parked, Revision: 1},
		},
	}
	name, room := "juniper", 0.6
	want := []status.Provider{
		{Name: account.Anthropic, Policy: catalog.Order, Serving: &name, BestHeadroom: &room, SoonestReset: at(time.Hour)},
		{Name: account.XAI, Policy: catalog.Score}, // ready and never read: nobody knows
	}
	r := status.Of(in)
	if diff := cmp.Diff(want, r.Providers); diff != "" {
		t.Errorf("providers (-want +got):\n%s", diff)
	}
	var got []string
	for _, a := range r.Accounts {
		mark := ""
		if a.Serving {
			mark = "*"
		}
		got = append(got, a.Name+mark)
		if a.Name == "bracken" && a.Order != 1 || a.Name == "juniper" && a.Order != 3 {
			t.Errorf("%s has place %d in its provider's order", a.Name, a.Order)
		}
	}
	if text := strings.Join(got, " "); text != "sorrel marlow juniper* bracken" {
		t.Errorf("accounts: got %q, want sorrel marlow juniper* bracken", text)
	}
}

func tally(pins ...pin.Record) *pin.Tally {
	t := pin.NewTally(t0)
	for _, p := range pins {
		t.Add(p)
	}
	return t
}

func TestPins(t *testing.T) {
	marlow, juniper := anthropic("marlow"), anthropic("juniper")
	hour := pin.Hour(t0)
	in := status.Input{
		Now:     t0,
		Catalog: catalog.Catalog{Accounts: []account.Account{marlow, juniper}},
		Pins: tally(
			pin.Record{Account: marlow.ID, CreatedAt: t0.Add(-59 * time.Minute), ExpiresAt: t0.Add(time.Second), Kept: map[int64]int64{hour: 5, hour - 1: 8}},
			pin.Record{Account: juniper.ID, CreatedAt: t0.Add(-5 * time.Hour), MovedAt: t0.Add(-time.Minute), ExpiresAt: t0.Add(time.Hour), Kept: map[int64]int64{hour - 3: 7, hour - 24: 100}},
			pin.Record{Account: marlow.ID, CreatedAt: t0.Add(-time.Hour), ExpiresAt: t0, Kept: map[int64]int64{hour - 1: 4}},
			pin.Record{Account: marlow.ID, CreatedAt: t0.Add(-25 * time.Hour), MovedAt: t0.Add(-24 * time.Hour), ExpiresAt: t0.Add(-time.Hour)},
		),
		InFlight: map[account.ID]int{marlow.ID: 2},
	}
	r := status.Of(in)
	// In the last hour: 5 of this clock hour and three quarters of 8+4 of the one before.
	want := status.Totals{
		LastHour: status.Counts{Kept: 5 + 9, Moved: 1, New: 1},
		LastDay:  status.Counts{Kept: 5 + 8 + 7 + 4, Moved: 1, New: 3},
	}
	if diff := cmp.Diff(want, r.Totals); diff != "" {
		t.Errorf("totals (-want +got):\n%s", diff)
	}
	for i, want := range []struct{ live, inFlight int }{{1, 2}, {1, 0}} {
		a := r.Accounts[i]
		if a.LivePins != want.live || a.InFlight == nil || *a.InFlight != want.inFlight {
			t.Errorf("%s: got %d live pins and in flight %v, want %+v", a.Name, a.LivePins, a.InFlight, want)
		}
	}
}

func TestJSON(t *testing.T) {
	a := anthropic("marlow")
	in := one(a, blocks(account.Block{Cause: account.FiveHour, Since: t0.Add(-time.Minute), Until: t0.Add(time.Hour)}))
	in.Now = t0.In(time.FixedZone("elsewhere", 3*3600)).Add(123 * time.Millisecond)
	got, err := json.Marshal(status.Of(in))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"at":"2027-03-04T10:15:00Z","accounts":[{"name":"marlow","provider":"anthropic","kind":"subscription","order":1,` +
		`"state":"cooldown","reason":"five-hour","until":"2027-03-04T11:15:00Z","parked_since":null,"login_expires_at":null,"needs_owner":null,"windows":[],` +
		`"blocked_models":[],"refuses":[],"live_pins":0,` +
		`"in_flight":null,"serving":false}],"providers":[{"name":"anthropic","policy":"score","serving":null,"best_headroom":0,` +
		`"soonest_reset":null}],"totals":{"last_hour":{"kept":0,"moved":0,"new":0},"last_day":{"kept":0,"moved":0,"new":0}},"last_poll":null,"last_switch":null}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	empty, err := json.Marshal(status.Of(status.Input{Now: t0}))
	if err != nil || !strings.Contains(string(empty), `"accounts":[],"providers":[]`) {
		t.Errorf("of nothing: got %s, %v, want empty lists", empty, err)
	}
}

// TestPauses: a pause of seconds shows as what it is while it lasts.
func TestPauses(t *testing.T) {
	rules := account.Rules{BarePause: 5 * time.Second}
	bare := account.State{}.Reject(account.Rejection{Kind: account.Bare, At: t0.Add(-2 * time.Second), Model: "claude-sonnet-5"}, rules)
	throttled := account.State{}.Reject(account.Rejection{Kind: account.Throttle, At: t0.Add(-2 * time.Second), Until: t0.Add(20 * time.Second)}, rules)
	got := status.Of(one(anthropic("marlow"), bare)).Accounts[0]
	want := []status.BlockedModel{{Model: "claude-sonnet-5", Reason: "bare", Until: t0.Add(3 * time.Second)}}
	if diff := cmp.Diff(want, got.BlockedModels); diff != "" {
		t.Errorf("a paused model (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"model claude-sonnet-5 waits until 2027-03-04 10:15:03Z (in 3s): bare"}, got.Remarks(t0)); diff != "" {
		t.Errorf("a paused model (-want +got):\n%s", diff)
	}
	got = status.Of(one(anthropic("marlow"), throttled)).Accounts[0]
	if want := "cooldown (throttle) until 2027-03-04 10:15:20Z (in 20s)"; got.Standing(t0) != want {
		t.Errorf("a paused account: got %q, want %q", got.Standing(t0), want)
	}
}

func TestParked(t *testing.T) {
	for name, tt := range map[string]struct {
		kind   account.RejectionKind
		remedy string
	}{
		"a credential":       {account.BadCredential, "log in with Claude Code again and import its file: holdfast account login marlow --import FILE"},
		"money":              {account.Funds, "see to its plan or its extra usage at claude.ai, then: holdfast account clear marlow"},
		"nobody knows of it": {"", "mend what the provider refused, then: holdfast account clear marlow; or give it a new credential: holdfast account login marlow --import FILE"},
	} {
		t.Run(name, func(t *testing.T) {
			got := status.Of(one(anthropic("marlow"), account.State{Parked: &account.Parked{Since: t0.Add(-time.Hour), Reason: "r", Kind: tt.kind}})).Accounts[0]
			if got.ParkedFor != tt.kind || !cmp.Equal(got.ParkedSince, at(-time.Hour)) || got.Standing(t0) != "parked (r) since 2027-03-04 09:15Z" {
				t.Errorf("got %q, %v, %q", got.ParkedFor, got.ParkedSince, got.Standing(t0))
			}
			if got.Remedy() != tt.remedy {
				t.Errorf("got %q, want %q", got.Remedy(), tt.remedy)
			}
		})
	}
	if got := status.Of(one(anthropic("marlow"), account.State{})).Accounts[0].Remedy(); got != "" {
		t.Errorf("of a ready account: got %q", got)
	}
}

// TestLoginExpires: it is seen without opening the credential.
func TestLoginExpires(t *testing.T) {
	box, err := seal.New([32]byte{1})
	if err != nil {
		t.Fatal(err)
	}
	s := store.New(memstore.New())
	a := anthropic("marlow")
	login := credential.Credential{Access: credential.NewSecret("x"), ExpiresAt: t0, Generation: 1}
	if _, err := (vault.Vault{Store: s, Box: box}).Save(t.Context(), a.ID, login, 0); err != nil {
		t.Fatal(err)
	}
	sealed, err := s.Credential(t.Context(), a.ID)
	if err != nil {
		t.Fatal(err)
	}
	in := one(a, account.State{})
	in.Credentials = map[account.ID]store.SealedRecord{a.ID: sealed}
	got := status.Of(in).Accounts[0]
	if !cmp.Equal(got.LoginExpiresAt, at(0)) {
		t.Errorf("got %v, want %v", got.LoginExpiresAt, t0)
	}
	if before := t0.Add(-time.Second); got.Standing(before) != "ready" || got.Expiry(before) != "" {
		t.Errorf("a second before: got %q and %q", got.Standing(before), got.Expiry(before))
	}
	after := t0.Add(2 * time.Minute)
	want := "login expired at 2027-03-04 10:15Z (2m ago); it is renewed when it is needed: `holdfast account show marlow` says whether it can be"
	if diff := cmp.Diff(want, got.Expiry(after)); diff != "" || got.Standing(t0) != "ready, login expired" {
		t.Errorf("after: got %q (-want +got):\n%s", got.Standing(t0), diff)
	}
	in.States = map[account.ID]store.StateRecord{a.ID: {State: account.State{Parked: &account.Parked{Since: t0, Reason: "renewal-refused", Kind: account.BadCredential}}}}
	if got := status.Of(in).Accounts[0].Expiry(after); got != "" {
		t.Errorf("of an account that waits for its owner: got %q, want nothing", got)
	}
}

// What an account refuses shows with its end, its reason and what its owner can do.
func TestRefuses(t *testing.T) {
	refused := func(thing account.Thing, minutes int, why string) account.Refused {
		return account.Refused{Thing: thing, Since: t0, Until: t0.Add(time.Duration(minutes) * time.Minute), Why: why}
	}
	s := account.State{Refuses: map[string]account.Refused{}}
	for _, r := range []account.Refused{
		refused(account.Thing{Feature: "long-context"}, 30, "long-context"),
		refused(account.Thing{Feature: account.FeatureRegion}, 30, "region"),
		refused(account.Thing{Model: "v"}, 30, account.WhyUnverified),
		refused(account.Thing{Feature: account.FeatureAddress}, 30, "address"),
		refused(account.Thing{Feature: account.FeatureOrganization}, 30, "organization"),
		refused(account.Thing{Model: "m"}, 30, "model-access"),
		refused(account.Thing{Model: "m", Tier: "priority"}, 30, "tier"),
		refused(account.Thing{Model: "m", Limit: account.Tokens}, 30, "request-too-large"),
		refused(account.Thing{Feature: "extra"}, 0, "over"),
	} {
		s.Refuses[r.Key()] = r
	}
	s = s.Reject(account.Rejection{Kind: account.Throttle, At: t0, Model: "m", Tier: "flex", Until: t0.Add(90 * time.Second)}, account.Rules{})
	got := status.Of(one(anthropic("marlow"), s)).Accounts[0]
	if got.State != status.Ready || len(got.BlockedModels) != 0 {
		t.Errorf("got state %s and blocked models %v, want a ready account", got.State, got.BlockedModels)
	}
	const until, asks = ", as far as is known until 2027-03-04 10:45Z (in 30m): ", "; it is asked again at the end of that time, or after: holdfast account clear marlow"
	want := []string{
		"refuses model m (model-access)" + until + "have the model opened for its project or plan at claude.ai, or leave it to other accounts" + asks,
		"refuses requests for m that are larger than its limit of tokens (request-too-large)" + until + "raise the limit at claude.ai, or send less in one request; smaller requests are served" + asks,
		"refuses tier flex of model m (throttle), as far as is known until 2027-03-04 10:16Z (in 1m)",
		"refuses tier priority of model m (tier)" + until + "have the tier opened for it at claude.ai, or leave it to other accounts" + asks,
		"refuses model v (unverified)" + until + "verify the organization at claude.ai" + asks,
		"refuses everything from this address (address)" + until + "allow the address that its requests come from at claude.ai, then: holdfast account clear marlow",
		"refuses long-context (long-context)" + until + "give it the permission, or the plan, at claude.ai, or leave it to other accounts" + asks,
		"refuses everything for this organization or project (organization)" + until + "give it a workspace of its credential: holdfast account login marlow --workspace ID",
		"refuses everything at this host (region)" + until + "send its requests to the host of its region: holdfast account login marlow --base-url URL",
	}
	if diff := cmp.Diff(want, got.Remarks(t0)); diff != "" {
		t.Errorf("remarks (-want +got):\n%s", diff)
	}
	if n := got.NeedsOwner; n == nil || n.Command == "" || !strings.HasPrefix(n.Command, "holdfast account ") {
		t.Errorf("got %+v needed of its owner, who alone can mend that everything is refused", n)
	}
	if some := status.Of(one(anthropic("marlow"), account.State{}.Reject(account.Rejection{Kind: account.Access, At: t0, Model: "m"}, account.Rules{}))).Accounts[0]; some.NeedsOwner != nil {
		t.Errorf("got %+v needed of the owner of an account that refuses one model", some.NeedsOwner)
	}
	encoded, err := json.Marshal(got.Refuses[1])
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"model":"m","limit":"tokens","until":"2027-03-04T10:45:00Z","why":"request-too-large","cure":"raise the limit at claude.ai, or send less in one request; smaller requests are served` + asks + `"}`; string(encoded) != want {
		t.Errorf("got  %s\nwant %s", encoded, want)
	}
}

// TestForeignText: what clients and providers wrote does not reach the terminal raw.
func TestForeignText(t *testing.T) {
	s := blocks(account.Block{Cause: account.CauseBare, Model: "a\nb\x1b[2J", Since: t0.Add(-time.Second), Until: t0.Add(time.Second)})
	s.Parked = &account.Parked{Reason: "no\x07"}
	var b strings.Builder
	if err := status.Of(one(anthropic("marlow"), s)).WriteText(&b); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(b.String(), "\x1b\x07") || !strings.Contains(b.String(), `model "a\nb\x1b[2J" waits`) || !strings.Contains(b.String(), `parked ("no\a")`) {
		t.Errorf("got %q", b.String())
	}
}

func TestWriteText(t *testing.T) {
	marlow, juniper := anthropic("marlow"), anthropic("juniper")
	states := map[account.ID]store.StateRecord{
		marlow.ID: {State: account.State{
			ReadAt: t0,
			Windows: map[string]account.Window{
				account.FiveHour: {Utilization: 0.31, HasUtilization: true, ResetAt: t0.Add(130 * time.Minute), ObservedAt: t0.Add(-90 * time.Second)},
				account.Requests: {Utilization: 0.2, HasUtilization: true, ResetAt: t0.Add(time.Second), ObservedAt: t0.Add(-2 * time.Hour)},
				account.Weekly:   {Utilization: 1.02, HasUtilization: true, ResetAt: t0.Add(75 * time.Hour), ObservedAt: t0.Add(-2 * time.Hour)},
			},
			Blocks: map[string]account.Block{"x": {Cause: "weekly:fable", Family: "fable", Since: t0.Add(-1), Until: t0.Add(75 * time.Hour)}},
		}},
		juniper.ID: {State: account.State{Parked: &account.Parked{Reason: "billing_error"}}},
	}
	var b strings.Builder
	r := status.Of(status.Input{Now: t0, Catalog: catalog.Catalog{Accounts: []account.Account{marlow, juniper}}, States: states})
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		"ACCOUNT  PROVIDER   STATE                   FIVE-HOUR      WEEKLY          OTHER WINDOWS  READ    PINS",
		"marlow   anthropic  ready                   31% for 2h10m  102% for 3d03h  requests 20%   1m ago  0",
		"juniper  anthropic  parked (billing_error)  -              -               -              never   0",
		"marlow: models of family fable wait until 2027-03-07 13:15Z (in 3d03h): weekly:fable",
		"",
		"anthropic: policy score, best headroom 0%, next reset 2027-03-04 12:25Z (in 2h10m)",
		"pins: last hour 0 kept, 0 moved, 0 new; last day 0 kept, 0 moved, 0 new",
		"",
	}, "\n")
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
	b.Reset()
	known := status.Of(status.Input{Now: t0, Catalog: catalog.Catalog{Accounts: []account.Account{juniper}}, InFlight: map[account.ID]int{juniper.ID: 3}})
	if err := known.WriteText(&b); err != nil || !strings.Contains(b.String(), "PINS  IN FLIGHT\njuniper") || !strings.Contains(b.String(), " 0     3\n") ||
		!strings.Contains(b.String(), "best headroom unknown") {
		t.Errorf("of a server: got %v\n%s", err, b.String())
	}
	b.Reset()
	if err := status.Of(status.Input{Now: t0}).WriteText(&b); err != nil || !strings.Contains(b.String(), "holdfast account add") {
		t.Errorf("of nothing: got %q, %v, want advice", b.String(), err)
	}
}
