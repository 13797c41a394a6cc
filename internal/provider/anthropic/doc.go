// Package anthropic is Anthropic's wire: the Messages API with API keys, and with the
// logins of Claude subscriptions.
//
// # What it decides
//
// Inspect says what a request is to its conversation and whose it is; Read turns the
// headers of an answer into a reading; Classify says what a refusal means; Event and the
// usage functions follow a stream; Refuse and StreamError put the gateway's own refusals
// into the shape Anthropic's clients understand. Renewal and Looks are the calls of holdfast's
// own, to renew a login and to ask for its usage, and Renewed and Looked read their answers.
//
// # Refusals
//
// What each published and each known refusal is about stands in one table, with its
// sources: see refusals.go. Headers decide of rate limits and allowances.
//
// # Windows
//
// A subscription's answers carry anthropic-ratelimit-unified-* headers, one group per
// window: 5h is five-hour, 7d is weekly, 7d_sonnet and 7d_opus are the weekly windows of
// those families, 7d_oi is weekly:fable. Names are found by scanning the prefix, so a
// window that is new keeps its own name. The headers are undocumented and change every
// few weeks; nothing here fails when one is missing.
//
// An API key's answers carry anthropic-ratelimit-requests, -tokens, -input-tokens and
// -output-tokens, token buckets that are refilled all the time. The separate pools
// (anthropic-priority-* and anthropic-fast-*) are left out of readings: they bind only
// requests that ask for them, and a spent one must not keep ordinary requests away.
//
// # Never
//
// No I/O, no clock, no state. It never alters a body, never keeps a list of known beta
// flags, and never takes a per-request id for a conversation's.
package anthropic

import (
	"holdfast/internal/core/account"
	"holdfast/internal/provider"
)

// Provider implements provider.Provider for Anthropic. The zero value is ready.
type Provider struct{}

var _ provider.Provider = Provider{}

// Name is account.Anthropic.
func (Provider) Name() account.Provider { return account.Anthropic }
