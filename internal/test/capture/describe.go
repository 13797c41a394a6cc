package capture

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/provider"
)

// Describe says in lines what was read from an answer, in the words that captures expect:
//
//	window NAME [utilization=F] [resets=TIME] [status=S]
//	claim WINDOW
//	overage available | overage charged
//	organization ID
//	rejection kind=K [code=C] rule=R [feature=F] [tier=T] [limit=L] [per-model] [until=TIME]
//	spent WINDOW [family=F] [resets=TIME]
//	usage [model=M] input=N read=N write=N output=N
//
// Windows come in the order of their names. Nothing read is the one line "nothing".
func Describe(r account.Reading, x account.Rejection, u provider.Usage) []string {
	var lines []string
	for _, w := range r.Windows {
		l := line{"window", w.Name}
		if w.HasUtilization {
			l.add("utilization", strconv.FormatFloat(w.Utilization, 'g', 4, 64))
		}
		l.at("resets", w.ResetAt)
		l.add("status", string(w.Status))
		lines = append(lines, l.String())
	}
	if r.Claim != "" {
		lines = append(lines, "claim "+r.Claim)
	}
	if r.Overage.Available {
		lines = append(lines, "overage available")
	}
	if r.Overage.Charged {
		lines = append(lines, "overage charged")
	}
	if r.Organization != "" {
		lines = append(lines, "organization "+r.Organization)
	}
	if x.Rejected() {
		l := line{"rejection"}
		l.add("kind", string(x.Kind))
		l.add("code", x.Code)
		l.add("rule", x.Rule)
		l.add("feature", x.Feature)
		l.add("tier", x.Tier)
		l.add("limit", x.Limit)
		if x.PerModel {
			l = append(l, "per-model")
		}
		l.at("until", x.Until)
		lines = append(lines, l.String())
	}
	for _, s := range x.Spent {
		l := line{"spent", s.Window}
		l.add("family", s.Family)
		l.at("resets", s.ResetAt)
		lines = append(lines, l.String())
	}
	if u != (provider.Usage{}) {
		l := line{"usage"}
		l.add("model", u.Model)
		lines = append(lines, fmt.Sprintf("%s input=%d read=%d write=%d output=%d", l, u.Input, u.CacheRead, u.CacheWrite, u.Output))
	}
	if lines == nil {
		return []string{"nothing"}
	}
	return lines
}

// line is the words of a line.
type line []string

func (l *line) add(name, value string) {
	if value != "" {
		*l = append(*l, name+"="+value)
	}
}

func (l *line) at(name string, t time.Time) {
	if !t.IsZero() {
		l.add(name, t.UTC().Format(time.RFC3339))
	}
}

func (l line) String() string { return strings.Join(l, " ") }
