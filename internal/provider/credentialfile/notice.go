package credentialfile

import "holdfast/internal/core/account"

// clients are the official clients whose logins can be imported.
var clients = map[account.Provider]string{
	account.Anthropic: "Claude Code",
	account.OpenAI:    "Codex",
	account.XAI:       "the Grok CLI",
}

// ClientOf names a provider's official client, whose logins can be imported.
func ClientOf(p account.Provider) string { return clients[p] }

// TwoRefreshers says what importing a login does to the client it came from.
func (l Login) TwoRefreshers() string {
	return "Log in to " + l.Client + " again now, so that it has a login of its own: one login cannot have two refreshers, " +
		"and whichever renews this one first logs the other out."
}

// Terms says what a provider's published terms make of subscription logins behind a
// gateway; empty for providers whose logins cannot be imported. None of it is legal advice.
func Terms(p account.Provider) string {
	switch p {
	case account.Anthropic:
		return "Anthropic's published terms mean a subscription login for ordinary use of Claude Code and Anthropic's own applications, " +
			"and ask developers of other products to use API keys. Keeping one here is not sanctioned by that text: it is at your own risk, " +
			"which may be a block or suspension without notice, and never for other people's use. " +
			"https://code.claude.com/docs/en/legal-and-compliance"
	case account.OpenAI:
		return "OpenAI's published terms forbid sharing a login and going around rate limits, and never permit a Codex login in commercial or hosted " +
			"services; local, open-source use by one person is tolerated, not promised. Spreading work over several logins in order to pass a limit is against " +
			"their wording. Keeping a login here is at your own risk, and never for other people's use; API keys are the ordinary way. " +
			"https://learn.chatgpt.com/docs/app-server https://openai.com/policies/terms-of-use"
	case account.XAI:
		return "xAI publishes no permission and no ban for Grok logins in other clients: its terms restrict automated access that it has not authorized and " +
			"going around restrictions, and access has been cut by plan now and then. Keeping a login here is at your own risk, and never for other people's " +
			"use; API keys are the documented way. https://x.ai/legal/terms-of-service"
	}
	return ""
}
