package status

import (
	"holdfast/internal/account"
	"holdfast/internal/credentialfile"
	"holdfast/internal/refresh"
)

// payAt are where an account's owner sees to its balance, its limits and its plan.
var payAt = map[account.Provider]map[account.Kind]string{
	account.Anthropic: {account.Key: "platform.claude.com", account.Subscription: "claude.ai"},
	account.OpenAI:    {account.Key: "platform.openai.com", account.Subscription: "chatgpt.com"},
	account.XAI:       {account.Key: "console.x.ai", account.Subscription: "grok.com"},
}

// Remedy is what the owner of a parked account does to have it used again; empty for all
// others.
func (a Account) Remedy() string {
	again := "holdfast account clear " + a.Name
	login := "holdfast account login " + a.Name + " --key-env VARIABLE"
	anew := "give it a new key: " + login
	if a.Kind == account.Subscription {
		login = "holdfast account login " + a.Name + " --import FILE"
		anew = "log in with " + credentialfile.ClientOf(a.Provider) + " again and import its file: " + login
	}
	at := payAt[a.Provider][a.Kind]
	switch {
	case a.State != Parked:
		return ""
	case a.Reason == refresh.ReasonRefused:
		return "the provider does not renew this login any more; " + anew
	case a.Reason == refresh.ReasonAnswerLost:
		return "the answer to a renewal was lost, and with it the new tokens; " + anew
	case a.Reason == refresh.ReasonImpossible:
		return "the login ended and has no refresh token; " + anew
	case a.Reason == refresh.ReasonNotEntitled:
		return "the login is good, but its plan does not include this use; change the plan at " + at + ", then: " + again
	case a.ParkedFor == account.BadCredential:
		return anew
	case a.ParkedFor == account.Funds && a.Kind == account.Subscription:
		return "see to its plan or its extra usage at " + at + ", then: " + again
	case a.ParkedFor == account.Funds:
		return "see to its balance, its spending limit or its access at " + at + ", then: " + again
	}
	return "mend what the provider refused, then: " + again + "; or give it a new credential: " + login
}
