// Package credentialfile reads the files in which official clients keep their logins.
//
// Read takes a file's bytes and gives the login in it, or says in a sentence why there is
// none: the file belongs to another client, holds no login of the wanted kind, or is not
// what its owner thinks it is. It reads no file itself, knows no clock (whether a login
// has expired is the caller's to judge), contacts nobody, checks no token's signature, and no refusal repeats anything
// from the file: it is made of secrets.
package credentialfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/credential"
)

// Login is what a file holds.
type Login struct {
	Provider account.Provider
	// Client is the official client that keeps the file.
	Client     string
	Credential credential.Credential
	// Plan as the client names it, such as "max 5x"; empty when the file does not say.
	Plan string
	// Team: the login is a seat of an organization's plan.
	Team bool
}

// maxSize bounds a credential file; the real ones have a few kilobytes.
const maxSize = 1 << 20

// Refusals that are about no client's file in particular.
var (
	errNotJSON = errors.New("this is not a credential file: it holds no JSON object; " + known)
	errUnknown = errors.New("no known client keeps its login in such a file; " + known)
	errProfile = errors.New("this is a profile of the ant command; " + known)
)

const known = "Claude Code's is ~/.claude/.credentials.json, Codex's ~/.codex/auth.json, the Grok CLI's ~/.grok/auth.json"

// Read finds the login in a file.
func Read(file []byte) (Login, error) {
	members := object(bytes.TrimPrefix(file, []byte("\ufeff")))
	if len(file) > maxSize || members == nil {
		return Login{}, errNotJSON
	}
	has := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { _, ok := members[name]; return ok })
	}
	switch {
	case has("claudeAiOauth"):
		return readClaudeCode(members["claudeAiOauth"])
	case has("mcpOAuth"):
		return Login{}, errOnlyMCP
	case has("tokens", "OPENAI_API_KEY", "agent_identity", "personal_access_token", "bedrock_api_key"):
		return readCodex(members)
	case has("access_token"):
		return Login{}, errProfile
	}
	for name := range members {
		if isGrok(name) {
			return readGrok(members)
		}
	}
	return Login{}, errUnknown
}

// object is the members of a JSON object; nil for anything else.
func object(raw []byte) map[string]json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return nil
	}
	return members
}

// text is a member that is a string; empty when it is another type.
func text(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s) // what is no string tells nothing
	return s
}

// tells reports whether a member says anything.
func tells(raw json.RawMessage) bool {
	switch string(bytes.TrimSpace(raw)) {
	case "", "null", `""`, "[]", "{}", "false":
		return false
	}
	return true
}

// isSafe reports whether tokens can go out in a header.
func isSafe(tokens ...string) bool {
	return !slices.ContainsFunc(tokens, func(t string) bool {
		return strings.ContainsFunc(t, func(r rune) bool { return r <= ' ' || r > '~' })
	})
}

// Bounds that tell milliseconds from seconds: as seconds, leastMillis would be the year
// 5138; as milliseconds it is 1973. mostMillis is the year 5138.
const (
	leastSeconds = 1e9
	leastMillis  = 1e11
	mostMillis   = 1e14
)

// instant reads a number of seconds or milliseconds since 1970, whichever of the two it
// can be: taken for the other, it would lie in 1970 or far off, and a login that is good
// would be refused as expired, or one that is not kept. 0 and nothing give the zero time;
// false is for what is no instant.
func instant(n json.Number) (time.Time, bool) {
	if n == "" {
		return time.Time{}, true
	}
	v, err := n.Float64()
	switch {
	case err != nil:
		return time.Time{}, false
	case v == 0:
		return time.Time{}, true
	case v >= leastMillis && v < mostMillis:
		return time.UnixMilli(int64(v)).UTC(), true
	case v >= leastSeconds && v < leastMillis:
		return time.Unix(int64(v), 0).UTC(), true
	}
	return time.Time{}, false
}

// date reads an instant that is written as RFC 3339 has it; zero for anything else.
func date(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || t.Unix() < leastSeconds || t.Year() > 9999 {
		return time.Time{}
	}
	return t.UTC()
}
