// Package openai is OpenAI's wire: the Responses and Chat Completions APIs with API keys
// (api.openai.com), and the Responses API of ChatGPT plans, which Codex speaks
// (chatgpt.com/backend-api/codex).
//
// # What it decides
//
// Inspect says what a request is to its conversation and whose it is; Read and
// EventReading turn the headers of an answer, and the events within it, into readings;
// Classify says what a refusal means; Event and the usage functions follow a stream;
// Refuse and StreamError put the gateway's own refusals into the shape that OpenAI's
// clients understand, Codex above all. Renewal and Looks are the calls of holdfast's own, to
// renew a login and to ask for its usage, and Renewed and Looked read their answers.
//
// # Refusals
//
// What each published and each known refusal is about stands in one table, with its
// sources: see refusals.go. Headers decide of rate limits and allowances.
//
// # Windows
//
// A plan's answers carry x-codex-primary-* and x-codex-secondary-* headers. A window is
// named by its length and never by its slot: the five-hour window came and went in 2026,
// and then the weekly one stands in the first slot. Further families of limits, one for
// each x-ID-primary-used-percent header, concern single models and are named after what
// their -limit-name says, such as weekly:gpt-5.3-codex-spark.
//
// A key's answers carry x-ratelimit-* headers: requests and tokens, and the same with
// project- in front where the project has a limit of its own. They belong to the
// organization or the project, and to one model each.
//
// # Words
//
// Codex is whatever calls itself so: the official command line and editor clients. Its
// conversations are always bound, since they carry reasoning that is encrypted for the
// account which made it. A workspace is what a ChatGPT login acts for; one person may have
// several, each with limits of its own.
//
// # Never
//
// No I/O, no clock, no state. It never alters a body, never names a client that did not
// name itself, never takes a thread, a window or a request for a conversation, and holds
// no list of models.
package openai

import (
	"holdfast/internal/core/account"
	"holdfast/internal/provider"
)

// Provider implements provider.Provider for OpenAI. The zero value is ready.
type Provider struct{}

var (
	_ provider.Provider = Provider{}
	_ provider.Hinter   = Provider{}
)

// Name is account.OpenAI.
func (Provider) Name() account.Provider { return account.OpenAI }
