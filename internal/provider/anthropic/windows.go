package anthropic

import (
	"strconv"
	"strings"
	"time"

	"holdfast/internal/core/account"
)

const (
	// includedOverage is the scope of the meter on which Fable-class models draw. It is
	// told only on answers to those models, and is named after them: the window of the
	// included allowance and that of the family are then one.
	includedOverage      = "oi"
	includedOverageClaim = "overage_included"
	includedFamily       = "fable"
)

// windowOf names the window of a wire name such as 5h or 7d_sonnet. A name whose length
// cannot be told names a whole-account window of its own.
func windowOf(wire string) string {
	length, scope, _ := strings.Cut(wire, "_")
	name := lengthName(length)
	if name == "" {
		return wire
	}
	return scoped(name, scope, includedOverage)
}

// windowOfClaim names the window of a representative-claim such as seven_day_opus. It is
// empty for claims that are no window (overage) or of an unknown length.
func windowOfClaim(claim string) string {
	claim = strings.ToLower(strings.TrimSpace(claim))
	for _, c := range []struct{ prefix, window string }{{"five_hour", account.FiveHour}, {"seven_day", account.Weekly}} {
		rest, ok := strings.CutPrefix(claim, c.prefix)
		if ok && (rest == "" || rest[0] == '_') {
			return scoped(c.window, strings.TrimPrefix(rest, "_"), includedOverageClaim)
		}
	}
	return ""
}

func scoped(window, scope, included string) string {
	switch scope {
	case "":
		return window
	case included:
		return window + ":" + includedFamily
	default:
		return window + ":" + scope
	}
}

// lengthName names a window by a length such as 5h or 30d; empty when the text is not a length.
func lengthName(length string) string {
	unit := time.Duration(0)
	switch {
	case strings.HasSuffix(length, "d"):
		unit = 24 * time.Hour
	case strings.HasSuffix(length, "h"):
		unit = time.Hour
	default:
		return ""
	}
	n, err := strconv.ParseUint(length[:len(length)-1], 10, 10) // at most 1023: no overflow
	if err != nil {
		return ""
	}
	return account.LengthName(time.Duration(n) * unit)
}

// claimOf is the way back for the gateway's own refusals: the wire name and the claim
// that Claude Code understands best for a window that is spent for a family. It knows no
// claim of other families; their window is then the plain one. Both are empty for a
// window that has no claim.
func claimOf(window, family string) (wire, claim string) {
	base, scope, _ := strings.Cut(window, ":")
	if scope == "" {
		scope = family
	}
	switch base {
	case account.FiveHour:
		return "5h", "five_hour"
	case account.Weekly:
		switch scope {
		case "opus", "sonnet":
			return "7d_" + scope, "seven_day_" + scope
		case includedFamily:
			return "7d_" + includedOverage, "seven_day_" + includedOverageClaim
		}
		return "7d", "seven_day"
	}
	return "", ""
}
