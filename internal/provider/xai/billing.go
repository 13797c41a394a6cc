package xai

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/wire/limits"
)

// credits is what xAI says about a subscription's allowance, over either way.
type credits struct {
	// percent is how much of the period's allowance is used, 0 to 100 or above. Both ways
	// leave a zero out, so what was not told is 0; unreadable says that something was told
	// and could not be read.
	percent    float64
	unreadable bool
	// period is the current one; billing the same, told beside it or alone.
	period, billing span
	length          period
	// onDemandCap, onDemandUsed and prepaid are in US cents.
	onDemandCap, onDemandUsed, prepaid int64
}

// span is a stretch of time; what was not told is zero.
type span struct{ start, end time.Time }

// period is the kind of a period.
type period int

const (
	untold period = iota
	byMonth
	byWeek
)

var errNoReset = errors.New("no reset is told")

// reading makes a reading of what was told. Without a reset the answer is taken for
// broken, since a figure that is missing could then be anything.
func (c credits) reading(at time.Time) (account.Reading, error) {
	reset := c.period.end
	if reset.IsZero() {
		reset = c.billing.end
	}
	if reset.IsZero() {
		return account.Reading{}, errNoReset
	}
	w := account.WindowReading{Name: c.window(reset, at), ResetAt: reset}
	if !c.unreadable && c.percent >= 0 && !math.IsInf(c.percent, 0) { // NaN is not >= 0
		w.Utilization, w.HasUtilization = c.percent/100+0, true // +0 makes a negative zero plain
	}
	return account.Reading{
		At: at, Source: account.FromPoll, Windows: []account.WindowReading{w},
		// Beyond a full period the next request is charged to what the owner topped up or
		// allowed. The sign of a balance is not documented: any but 0 counts.
		Overage: account.Overage{Available: c.onDemandUsed < c.onDemandCap || c.prepaid != 0},
	}, nil
}

// window names the period's window by its told kind, else by its length, else by how far
// off the reset is: periods are weeks, or else months.
func (c credits) window(reset, at time.Time) string {
	switch c.length {
	case byWeek:
		return account.Weekly
	case byMonth:
		return monthly
	case untold:
	}
	for _, s := range []span{c.period, c.billing} {
		if s.start.IsZero() || !s.end.After(s.start) {
			continue
		}
		length := s.end.Sub(s.start).Round(time.Hour)
		if length >= 28*day && length <= 31*day {
			return monthly
		}
		if name := account.LengthName(length); name != "" {
			return name
		}
	}
	if reset.Sub(at) > account.Week {
		return monthly
	}
	return account.Weekly
}

// Usage reads the answer of GET /v1/billing?format=credits, which says how much of a
// subscription's allowance is used. The pool is shared by all Grok products; the shares
// of each are left out.
//
// The answer leaves zeros out: where it is whole and its reset can be read, a figure that
// is missing is 0. (Some accounts may never be told one; a refusal then says more.) A
// figure that is there and cannot be read is dropped alone. An answer that is not whole,
// that tells no reset, or that has the older shape without credits, is an error.
func Usage(body []byte, at time.Time) (account.Reading, error) {
	var answer struct {
		Config *config `json:"config"`
	}
	var odd *json.UnmarshalTypeError // of one member, which is dropped alone
	if err := json.Unmarshal(body, &answer); err != nil && !errors.As(err, &odd) {
		return account.Reading{}, errors.New("read usage: the answer is not whole JSON")
	}
	if answer.Config == nil {
		return account.Reading{}, errors.New("read usage: the answer has no config")
	}
	if answer.Config.isOld() {
		return account.Reading{}, errors.New("read usage: the answer tells a monthly limit and no credits")
	}
	r, err := answer.Config.credits(at).reading(at)
	if err != nil {
		return account.Reading{}, fmt.Errorf("read usage: %w", err)
	}
	return r, nil
}

// config is the JSON form. Members that are not of the type expected are dropped alone.
type config struct {
	CreditUsagePercent *number `json:"creditUsagePercent"`
	CurrentPeriod      struct {
		Type  word `json:"type"` // a name, or the number of the protocol buffer
		Start text `json:"start"`
		End   text `json:"end"`
	} `json:"currentPeriod"`
	BillingPeriodStart text            `json:"billingPeriodStart"`
	BillingPeriodEnd   text            `json:"billingPeriodEnd"`
	OnDemandCap        cents           `json:"onDemandCap"`
	OnDemandUsed       cents           `json:"onDemandUsed"`
	PrepaidBalance     cents           `json:"prepaidBalance"`
	MonthlyLimit       json.RawMessage `json:"monthlyLimit"`
	Used               json.RawMessage `json:"used"`
}

// isOld recognizes the answer to a question without format=credits. Its limit of a
// subscription is 0, which means nothing, and least of all that it is used up.
func (c *config) isOld() bool {
	return (c.MonthlyLimit != nil || c.Used != nil) && c.CreditUsagePercent == nil && c.CurrentPeriod.End == ""
}

func (c *config) credits(at time.Time) credits {
	out := credits{
		period:      span{instant(c.CurrentPeriod.Start, at), instant(c.CurrentPeriod.End, at)},
		billing:     span{instant(c.BillingPeriodStart, at), instant(c.BillingPeriodEnd, at)},
		onDemandCap: int64(c.OnDemandCap), onDemandUsed: int64(c.OnDemandUsed), prepaid: int64(c.PrepaidBalance),
	}
	if p := c.CreditUsagePercent; p != nil {
		var ok bool
		out.percent, ok = limits.Fraction(string(*p))
		out.unreadable = !ok
	}
	switch kind := strings.ToUpper(string(c.CurrentPeriod.Type)); {
	case strings.Contains(kind, "WEEKLY"), kind == "2":
		out.length = byWeek
	case strings.Contains(kind, "MONTHLY"), kind == "1":
		out.length = byMonth
	}
	return out
}

// instant reads an RFC 3339 time with any fraction; zero when the text is not a time.
func instant(t text, at time.Time) time.Time {
	if _, err := time.Parse(time.RFC3339, string(t)); err != nil {
		return time.Time{}
	}
	when, _ := limits.Instant(string(t), at)
	return when
}

// cents is an amount {"val":…} in US cents; {} is 0, and so is what cannot be read.
type cents int64

func (c *cents) UnmarshalJSON(b []byte) error {
	var amount struct {
		Val json.RawMessage `json:"val"`
	}
	if json.Unmarshal(b, &amount) == nil {
		n, _ := strconv.ParseInt(strings.Trim(string(amount.Val), `"`), 10, 64)
		*c = cents(n)
	}
	return nil
}
