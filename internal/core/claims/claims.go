// Package claims reads what a login's tokens say of themselves: who logged in, for which
// workspace or team, by which plan, and from when until when a token is good.
//
// The tokens are JSON Web Tokens, and their signatures are not checked. We are not whom
// they are made for: the provider checks them at every request, and what is read here
// decides nothing that the provider would have to believe. It names an account, tells its
// owner the plan, and says when to ask for the next token; a token that lies is refused by
// the provider. Nothing here may ever let anybody in.
//
// A text that is not a JWT has no claims. A claim that is missing, or of another type than
// expected, is dropped alone. The package has no clock and repeats no token in any error:
// it has none to return.
package claims

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"
)

// maxToken bounds a token that is looked into, in bytes; real ones have up to 4 KiB.
const maxToken = 64 << 10

// Token is what every token may say.
type Token struct {
	// Subject is whom the token speaks for, as its issuer spells it; empty when not told.
	Subject string
	// IssuedAt and ExpiresAt bound the token's life; zero when not told.
	IssuedAt, ExpiresAt time.Time
}

// payload is the claims as they are written. It is false for what is no token.
func payload(token string) (claims map[string]json.RawMessage, ok bool) {
	if len(token) > maxToken {
		return nil, false
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil, false
	}
	// RFC 7515 leaves the padding out; what was put there all the same does no harm.
	text, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil || json.Unmarshal(text, &claims) != nil {
		return nil, false
	}
	return claims, claims != nil
}

// Read reads the claims that every token may have. It is false for what is no token.
func Read(token string) (Token, bool) {
	claims, ok := payload(token)
	if !ok {
		return Token{}, false
	}
	return Token{Subject: text(claims["sub"]), IssuedAt: instant(claims["iat"]), ExpiresAt: instant(claims["exp"])}, true
}

// text reads a claim that is a string; one that holds what no header or listing may show
// counts as missing.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil || len(s) > maxText || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) {
		return ""
	}
	return strings.TrimSpace(s)
}

// maxText bounds a claim that is taken over, in bytes.
const maxText = 256

// instant reads a NumericDate of RFC 7519: seconds, possibly with a fraction. Bounded as
// every told instant is, and never in milliseconds: a NumericDate cannot be.
func instant(raw json.RawMessage) time.Time {
	var n json.Number
	if json.Unmarshal(raw, &n) != nil {
		return time.Time{}
	}
	v, err := n.Float64()
	if err != nil || v < leastSecond || v > lastSecond {
		return time.Time{}
	}
	return time.Unix(int64(v), 0).UTC()
}

// Bounds of an instant, in epoch seconds: September 2001, and the end of the year 9999.
const (
	leastSecond = 1e9
	lastSecond  = 253402300799
)
