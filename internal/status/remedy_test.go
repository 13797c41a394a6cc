package status_test

import (
	"testing"

	"holdfast/internal/core/account"
	"holdfast/internal/status"
	"holdfast/internal/upkeep/refresh"
)

// What the owner is to do depends on what was refused, and of whom.
func TestRemedy(t *testing.T) {
	tests := []struct {
		name     string
		provider account.Provider
		kind     account.Kind
		parked   account.Parked
		want     string
	}{
		{
			"renewal refused", account.OpenAI, account.Subscription, account.Parked{Kind: account.BadCredential, Reason: refresh.ReasonRefused},
			"the provider does not renew this login any more; log in with Codex again and import its file: holdfast account login x --import FILE",
		},
		{
			"answer lost", account.XAI, account.Subscription, account.Parked{Kind: account.BadCredential, Reason: refresh.ReasonAnswerLost},
			"the answer to a renewal was lost, and with it the new tokens; log in with the Grok CLI again and import its file: holdfast account login x --import FILE",
		},
		{
			"no refresh token", account.Anthropic, account.Subscription, account.Parked{Kind: account.BadCredential, Reason: refresh.ReasonImpossible},
			"the login ended and has no refresh token; log in with Claude Code again and import its file: holdfast account login x --import FILE",
		},
		{
			"not entitled", account.XAI, account.Subscription, account.Parked{Kind: account.Funds, Reason: refresh.ReasonNotEntitled},
			"the login is good, but its plan does not include this use; change the plan at grok.com, then: holdfast account clear x",
		},
		{
			"a key refused", account.OpenAI, account.Key, account.Parked{Kind: account.BadCredential, Reason: "invalid_api_key"},
			"give it a new key: holdfast account login x --key-env VARIABLE",
		},
		{
			"balance of a key at Anthropic", account.Anthropic, account.Key, account.Parked{Kind: account.Funds, Reason: "billing_error"},
			"see to its balance, its spending limit or its access at platform.claude.com, then: holdfast account clear x",
		},
		{
			"balance of a key at OpenAI", account.OpenAI, account.Key, account.Parked{Kind: account.Funds, Reason: "insufficient_quota"},
			"see to its balance, its spending limit or its access at platform.openai.com, then: holdfast account clear x",
		},
		{
			"balance of a key at xAI", account.XAI, account.Key, account.Parked{Kind: account.Funds, Reason: "spending-limit"},
			"see to its balance, its spending limit or its access at console.x.ai, then: holdfast account clear x",
		},
		{
			"a plan at OpenAI", account.OpenAI, account.Subscription, account.Parked{Kind: account.Funds, Reason: "no plan"},
			"see to its plan or its extra usage at chatgpt.com, then: holdfast account clear x",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := account.Account{ID: "x", Name: "x", Provider: tt.provider, Kind: tt.kind}
			parked := tt.parked
			parked.Since = t0
			if got := status.Of(one(a, account.State{Parked: &parked})).Accounts[0].Remedy(); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}
