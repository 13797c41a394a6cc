package status

import (
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/provider/credentialfile"
	"holdfast/internal/upkeep/refresh"
)

// payAt are where an account's owner manages its balance, its limits and its plan.
var payAt = map[account.Provider]map[account.Kind]string{
	account.Anthropic: {account.Key: "platform.claude.com", account.Subscription: "claude.ai"},
	account.OpenAI:    {account.Key: "platform.openai.com", account.Subscription: "chatgpt.com"},
	account.XAI:       {account.Key: "console.x.ai", account.Subscription: "grok.com"},
}

// Remedy is what the owner of a parked account does to have it used again; empty for all
// others.
func (a Account) Remedy() string {
	if a.State != Parked && a.State != Unreadable {
		return ""
	}
	return a.need().text
}

// need is what the owner of an account is to do: in a sentence without and with the
// command, and the command.
type need struct{ what, text, command string }

// need is that of an account that is parked for Reason and ParkedFor.
func (a Account) need() need {
	again := "holdfast account clear " + a.Name
	login := "holdfast account login " + a.Name + " --key-env VARIABLE"
	anew := "give it a new key"
	if a.Kind == account.Subscription {
		login = "holdfast account login " + a.Name + " --import FILE"
		anew = "log in with " + credentialfile.ClientOf(a.Provider) + " again and import its file"
	}
	at := payAt[a.Provider][a.Kind]
	byLogin := func(why string) need { return need{why + anew, why + anew + ": " + login, login} }
	cleared := func(what string) need { return need{what, what + ", then: " + again, again} }
	switch {
	case a.Reason == account.UnreadableState:
		return cleared("what was known of it is damaged in the store, and is given up with the next command")
	case a.Reason == account.UnreadableCredential:
		return byLogin("its credential is damaged in the store, or was sealed with another key; ")
	case a.Reason == refresh.ReasonRefused:
		return byLogin("the provider does not renew this login any more; ")
	case a.Reason == refresh.ReasonAnswerLost:
		return byLogin("the answer to a renewal was lost, and with it the new tokens; ")
	case a.Reason == refresh.ReasonImpossible:
		return byLogin("the login ended and has no refresh token; ")
	case a.Reason == refresh.ReasonNotEntitled:
		return cleared("the login is good, but its plan does not include this use; change the plan at " + at)
	case a.ParkedFor == account.BadCredential:
		return byLogin("")
	case a.ParkedFor == account.Funds && a.Kind == account.Subscription:
		return cleared("see to its plan or its extra usage at " + at)
	case a.ParkedFor == account.Funds:
		return cleared("see to its balance, its spending limit or its access at " + at)
	}
	n := cleared("mend what the provider refused")
	n.text += "; or give it a new credential: " + login
	return n
}

// ends tells what waits for the owner: a parked account, and a login that goes on and is not
// renewed any more.
func (a *Account) ends(now time.Time, s account.State) {
	e := s.Ending
	switch {
	case a.State == Parked || a.State == Unreadable:
		n := a.need()
		a.NeedsOwner = &NeedsOwner{What: n.what, Command: n.command}
	case e != nil:
		n := Account{Name: a.Name, Provider: a.Provider, Kind: a.Kind, Reason: e.Reason}.need()
		a.NeedsOwner = &NeedsOwner{What: n.what, Command: n.command}
		stops := "it serves until its access token is refused, and not longer: "
		if ends := second(e.Until); !e.Until.IsZero() {
			a.NeedsOwner.Until, stops = &ends, "it serves until "+instant(ends, now)+", and not longer: "
			if !now.Before(ends) {
				stops = "its login ended at " + ends.Format(minute) + ": "
			}
		}
		a.Warning = stops + n.text
	}
}
