// Package simulate is a friendly stand-in for Anthropic: a provider that answers real
// clients on this machine without an account, without the internet and without a model.
// `holdfast serve --demo` puts two simulated accounts behind the gateway, so that the
// whole way from an agent to an answer can be seen before any real account is added.
//
// # What it does
//
// Provider is an http.Handler that answers POST /v1/messages (whole or streamed),
// POST /v1/messages/count_tokens, GET /v1/models and the warm-up probes in the shapes
// Anthropic documents for them. Every answer says plainly that it is a simulation and that no model was
// asked, and names the account and the number of messages, so that one sees which account
// served a turn and that the conversation arrived whole. The two simulated accounts are
// told apart by their credential; each has a five-hour and a weekly window that fill a
// little with every request, reported in the headers a subscription's answers carry
// (anthropic-ratelimit-unified-*). Usage figures follow the prompt cache's rules: the
// first turn of a conversation on an account writes its prefix, later turns within five
// minutes read it, and a turn that comes to another account pays for the whole again.
//
// Message, Failure, Unified and KeyLimits are the wire: they render what Anthropic
// sends, byte for byte the same for the same values; Response, Completion and ErrorBody do
// so for OpenAI, whose dialect xAI shares. The scripted upstream of the tests
// renders through them too, so there is one place to correct when the wire changes.
//
// # What it never does
//
// It refuses nobody who shows one of its credentials: its windows stop at 95 %. It asks
// no model, calls no tool, keeps nothing of a request but its size, contacts nobody, and
// listens on the loopback address only. It does not import the gateway's parsers, so
// that a fault in those cannot hide behind the same fault here.
package simulate
