package command

import (
	"strings"

	"holdfast/internal/account"
	"holdfast/internal/catalog"
)

// keyLooks are the beginnings by which issuers let their secrets be told apart, the longer
// ones first. at is the provider where such a key is in its place; none for what is no API
// key anywhere. A plain sk- tells nothing: many issue those.
var keyLooks = []struct {
	begins, what string
	at           account.Provider
}{
	{"sk-ant-oat", "the access token of a Claude login, which is no API key: a login is added with --import FILE", ""},
	{"sk-ant-ort", "the refresh token of a Claude login, which is no API key: a login is added with --import FILE", ""},
	{"sk-ant-", "an API key of Anthropic", account.Anthropic},
	{"sk-proj-", "an API key of OpenAI", account.OpenAI},
	{"xai-", "an API key of xAI", account.XAI},
	{"hf_", "a client key of holdfast, which your agents show to the gateway: an account needs a key of its provider", ""},
}

// sayOfKey remarks on an API key that looks as if it were meant for somewhere else, and on one
// that an account of another provider has too. A look proves nothing and nobody was asked, so
// the key was taken; back is the command that takes it back.
func (c *cli) sayOfKey(all catalog.Catalog, a account.Account, got obtained, hash, back string) {
	if got.kind != account.Key {
		return
	}
	key := got.Key.Reveal()
	for _, look := range keyLooks {
		if !strings.HasPrefix(key, look.begins) {
			continue
		}
		if look.at != a.Provider {
			c.say("This looks like %s. Account %s is one of %s and has it all the same; to take it back: %s", look.what, a.Name, a.Provider, back)
		}
		break
	}
	for _, other := range all.Accounts {
		if other.Provider != a.Provider && hash != "" && other.SecretHash == hash {
			c.say("Account %s of %s has this same key; it can be good at one of them only. To take it back here: %s", other.Name, other.Provider, back)
		}
	}
}
