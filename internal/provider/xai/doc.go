// Package xai is xAI's wire: the API of api.x.ai with API keys, and the proxy of the Grok
// CLI with the logins of Grok subscriptions.
//
// # What it decides
//
// Inspect says what a request is to its conversation and whose it is; Serves and Target
// keep the two worlds apart; Classify says what a refusal means; Event and the usage
// functions follow a stream of any of the three dialects spoken there (Responses, Chat
// Completions, Messages); Refuse and StreamError put the gateway's own refusals into a
// shape that the clients of all three understand; Usage and UsageGRPC read the two answers
// in which xAI tells how much of a subscription's allowance is used. Renewal and Looks are the
// calls of holdfast's own, to renew a login and to ask for that usage, and Renewed and
// Looked read their answers.
//
// # Refusals
//
// What each published and each known refusal is about stands in one table, with its
// sources: see refusals.go. Headers decide of rate limits and allowances.
//
// # Windows
//
// Answers tell nothing about windows. Their x-ratelimit-* headers are ceilings that are
// advertised: remaining equals limit after real traffic, and no reset stands beside them.
// So Read never makes a window of them, and a subscription's window (weekly, or 30d for
// one by the month) is known from Usage alone. A free plan has a rolling day for each
// model, 1d:MODEL, which is told only by its refusal.
//
// Rate limits of a key are per team and model. Every model is a family by itself.
//
// # An allowance that is spent
//
// A refusal for want of allowance tells no reset, and the same words come when the
// subscription is gone. For a subscription Classify therefore answers with kind Funds
// that lists in Spent the windows it would be: where the account's state knows a reset
// still to come of one of them, that window is spent until then; where it knows none, the
// account needs its owner. A key's refusal lists none.
//
// # Never
//
// No I/O, no clock, no state. It never alters a body, never invents a client's version,
// and never takes a per-request id for a conversation's.
package xai

import (
	"net/http"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/provider"
)

// Provider implements provider.Provider for xAI. The zero value is ready.
type Provider struct{}

var (
	_ provider.Provider = Provider{}
	_ provider.Hinter   = Provider{}
)

// Name is account.XAI.
func (Provider) Name() account.Provider { return account.XAI }

// Read implements provider.Provider. No header of xAI's says how full anything is, or
// whose the credential is, so the reading is always empty: see the package comment.
func (Provider) Read(_ http.Header, at time.Time) account.Reading {
	return account.Reading{At: at, Source: account.FromAnswer}
}
