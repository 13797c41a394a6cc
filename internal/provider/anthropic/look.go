package anthropic

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"holdfast/internal/core/account"
	"holdfast/internal/core/credential"
	"holdfast/internal/provider"
	"holdfast/internal/wire/limits"
)

const (
	usageURL = "https://api.anthropic.com/api/oauth/usage"
	// usageScope is the right to see the owner's usage. A login made for inference alone
	// lacks it, and is refused.
	usageScope = "user:profile"
)

// Looks implements provider.Looker. Keys have no usage endpoint of their own: what there
// is asks for an administrator's key.
//
// The call says of itself what it is: the User-Agent is holdfast's, though one that claims
// to be Claude Code is said to be allowed to ask more often.
func (p Provider) Looks(kind account.Kind, c credential.Credential) []provider.Call {
	if kind != account.Subscription || (len(c.Scopes) > 0 && !slices.Contains(c.Scopes, usageScope)) {
		return nil
	}
	h := http.Header{"Accept": {"application/json"}, "Content-Type": {"application/json"}, "Anthropic-Version": {"2023-06-01"}}
	p.Authorize(h, kind, c)
	return []provider.Call{{Method: http.MethodGet, URL: usageURL, Header: h}}
}

// Looked implements provider.Looker. Windows have the names that Read gives them. What a
// family has used is told in a list since July 2026, and before that by a member for each
// family; where both report one window, the stricter word counts. Members not known come
// and go, and say nothing.
func (p Provider) Looked(_ int, r provider.Reply) (account.Reading, error) {
	if r.Status != http.StatusOK {
		x := p.Classify(provider.Answer{Status: r.Status, Header: r.Header, Body: r.Body, At: r.At, Kind: account.Subscription})
		if x.Kind == account.BadCredential {
			return account.Reading{}, fmt.Errorf("look at usage: %w: %w", provider.ErrCredentialRefused, r.Unexpected())
		}
		return account.Reading{}, fmt.Errorf("look at usage: %w", r.Unexpected())
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(r.Body, &members) != nil {
		return account.Reading{}, fmt.Errorf("look at usage: %w", r.Unexpected())
	}
	reading := account.Reading{
		At: r.At, Source: account.FromPoll,
		Organization: strings.TrimSpace(r.Header.Get("Anthropic-Organization-Id")),
	}
	for name, raw := range members {
		if window := flatWindow(name); window != "" {
			var m struct {
				Utilization number `json:"utilization"`
				ResetsAt    text   `json:"resets_at"`
			}
			_ = json.Unmarshal(raw, &m) // null, and what is no object, tells nothing
			addWindow(&reading.Windows, window, m.Utilization, m.ResetsAt, r)
		}
	}
	var list []json.RawMessage
	_ = json.Unmarshal(members["limits"], &list) // older answers have none
	for _, raw := range list {
		var l limit
		_ = json.Unmarshal(raw, &l)
		if window := l.window(); window != "" {
			addWindow(&reading.Windows, window, l.Percent, l.ResetsAt, r)
		}
	}
	if reading.Empty() {
		return account.Reading{}, fmt.Errorf("look at usage: %w", errors.New("the answer reports no window"))
	}
	var extra extraUsage
	_ = json.Unmarshal(members["extra_usage"], &extra)
	reading.Overage.Available = extra.available()
	slices.SortFunc(reading.Windows, func(a, b account.WindowReading) int { return strings.Compare(a.Name, b.Name) })
	return reading, nil
}

// flatWindow names the window of a member such as seven_day_opus; empty for members that
// are no window, or one of something that is no model's (seven_day_cowork).
func flatWindow(member string) string {
	name := windowOfClaim(member)
	if family := account.FamilyOf(name); family != "" && !slices.Contains(families, family) {
		return ""
	}
	return name
}

// limit is one entry of the list.
type limit struct {
	Kind     text   `json:"kind"`
	Percent  number `json:"percent"`
	ResetsAt text   `json:"resets_at"`
	Scope    struct {
		Model struct {
			ID          text `json:"id"`
			DisplayName text `json:"display_name"`
		} `json:"model"`
	} `json:"scope"`
}

// window names the limit's window; empty for one that is about no model.
func (l limit) window() string {
	switch l.Kind {
	case "session":
		return account.FiveHour
	case "weekly_all":
		return account.Weekly
	case "weekly_scoped":
		for _, name := range []text{l.Scope.Model.ID, l.Scope.Model.DisplayName} {
			if family := Family(string(name)); family != "" {
				return account.WeeklyOf(family)
			}
		}
	}
	return ""
}

// addWindow takes in what was told of a window, if anything was.
func addWindow(windows *[]account.WindowReading, name string, percent number, resetsAt text, r provider.Reply) {
	w := account.WindowReading{Name: name}
	if used, ok := limits.Fraction(string(percent)); ok {
		w.Utilization, w.HasUtilization = used/100, true
	}
	w.ResetAt, _ = limits.Instant(string(resetsAt), r.At) // null before a window begins
	if !w.HasUtilization && w.ResetAt.IsZero() {
		return
	}
	i := slices.IndexFunc(*windows, func(o account.WindowReading) bool { return o.Name == name })
	if i < 0 {
		*windows = append(*windows, w)
		return
	}
	o := &(*windows)[i]
	if w.HasUtilization && (!o.HasUtilization || w.Utilization > o.Utilization) {
		o.Utilization, o.HasUtilization = w.Utilization, true
	}
	if w.ResetAt.After(o.ResetAt) {
		o.ResetAt = w.ResetAt
	}
}

// extraUsage is what the answer says about paid extra usage. Amounts are in minor units.
type extraUsage struct {
	Enabled        bool   `json:"is_enabled"`
	MonthlyLimit   number `json:"monthly_limit"`
	UsedCredits    number `json:"used_credits"`
	Utilization    number `json:"utilization"`
	DisabledReason text   `json:"disabled_reason"`
}

// available reports whether a request beyond the plan would be served and charged.
func (e extraUsage) available() bool {
	if !e.Enabled || e.DisabledReason != "" {
		return false
	}
	if percent, ok := limits.Fraction(string(e.Utilization)); ok && percent >= 100 {
		return false
	}
	most, limited := limits.Fraction(string(e.MonthlyLimit))
	used, told := limits.Fraction(string(e.UsedCredits))
	return !limited || !told || used < most
}
