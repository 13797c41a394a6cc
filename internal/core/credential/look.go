package credential

import (
	"strings"

	"holdfast/internal/core/account"
)

// Look is what a secret looks like by its beginning, by which issuers let theirs be told
// apart. It proves nothing.
type Look struct {
	begins string
	// What it looks like, in words.
	What string
	// At is the provider where such an API key is in its place; empty for what is no API key
	// anywhere.
	At account.Provider
	// Login: it is a token of a login.
	Login bool
}

// looks are the beginnings of secrets, the longer ones first. A plain sk- tells nothing: many
// issue those.
var looks = []Look{
	{"sk-ant-oat", "the access token of a Claude login", "", true},
	{"sk-ant-ort", "the refresh token of a Claude login", "", true},
	{"sk-ant-", "an API key of Anthropic", account.Anthropic, false},
	{"sk-proj-", "an API key of OpenAI", account.OpenAI, false},
	{"sk-svcacct-", "an API key of OpenAI", account.OpenAI, false},
	{"xai-", "an API key of xAI", account.XAI, false},
	{"eyJ", "the access token of a login", "", true}, // a JSON Web Token (RFC 7519)
	{"hf_", "a client key of holdfast", "", false},
}

// LookOf says what a secret looks like; false where its beginning tells nothing.
func LookOf(secret string) (Look, bool) {
	for _, look := range looks {
		if strings.HasPrefix(secret, look.begins) {
			return look, true
		}
	}
	return Look{}, false
}
