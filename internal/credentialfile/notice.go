package credentialfile

import "holdfast/internal/account"

// TwoRefreshers says what importing a login does to the client it came from.
func (l Login) TwoRefreshers() string {
	return "Log in to " + l.Client + " again now, so that it has a login of its own: one login cannot have two refreshers, " +
		"and whichever renews this one first logs the other out."
}

// Terms says what a provider's published terms make of subscription logins behind a
// gateway; empty for providers whose logins cannot be imported.
func Terms(p account.Provider) string {
	if p == account.Anthropic {
		return "Anthropic's published terms mean a subscription login for ordinary use of Claude Code and Anthropic's own applications, " +
			"and ask developers of other products to use API keys. Keeping one here is not sanctioned by that text: it is at your own risk, " +
			"which may be a block or suspension without notice, and never for other people's use. " +
			"https://code.claude.com/docs/en/legal-and-compliance"
	}
	return ""
}
