package command

import (
	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/credential"
)

// sayOfKey remarks on an API key that looks as if it were meant for somewhere else, and on one
// that an account of another provider has too. A look proves nothing and nobody was asked, so
// the key was taken; back is the command that takes it back.
func (c *cli) sayOfKey(all catalog.Catalog, a account.Account, got obtained, hash, back string) {
	if got.kind != account.Key {
		return
	}
	if look, known := credential.LookOf(got.Key.Reveal()); known && look.At != a.Provider {
		what := look.What
		switch {
		case look.Login:
			what += ", which is no API key: a login is added with --import FILE"
		case look.At == "":
			what += ", which your agents show to the gateway: an account needs a key of its provider"
		}
		c.say("This looks like %s. Account %s is one of %s and has it all the same; to take it back: %s", what, a.Name, a.Provider, back)
	}
	for _, other := range all.Accounts {
		if other.Provider != a.Provider && hash != "" && other.SecretHash == hash {
			c.say("Account %s of %s has this same key; it can be good at one of them only. To take it back here: %s", other.Name, other.Provider, back)
		}
	}
}
