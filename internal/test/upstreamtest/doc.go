// Package upstreamtest is the upstream of the tests: a server on the loopback address
// that speaks a provider's wire (Start Anthropic's, StartOpenAI and StartXAI theirs), knows
// several accounts by the credential that arrives, remembers every request, and answers
// each account from a script.
//
//	up := upstreamtest.Start(t)
//	one, two := up.Account("one", "key-one"), up.Account("two", "key-two")
//	one.Queue(upstreamtest.FiveHourSpent(reset)) // its next answer; after that good ones
//	… point the code under test at up.URL …
//	got := one.Requests()
//
// # Words
//
// A script makes an answer for a request. An answer is a status, headers and parts; a part is
// bytes to write, a gate to stop at, a silence, or an end. A mod changes a
// script's answers (Script.With): it holds, compresses, reframes or breaks them. A gate is
// how a test holds an answer until it has seen what it waits for; tests have no need to
// sleep. A grant is what an account's refresh token is exchanged for, once.
//
// # Production behaviour that is kept
//
// Each builder's comment names the behaviour it keeps. Common to Anthropic's: error envelopes with request-id in
// header and body; limit headers with a fraction (not a percentage) and epoch seconds for
// subscriptions, counts and RFC 3339 for API keys; one flush per event; x-should-retry on
// refusals, true also on spent windows; a request without a known credential is 401.
// A client that leaves is seen (Request.Left) while an answer is held or under way.
//
// # What is not kept
//
// The protocol is HTTP/1.1 in the clear, where the provider speaks HTTP/2 over TLS, so
// header names arrive in canonical case and a broken stream is a TCP reset instead of
// RST_STREAM. Credentials are compared as they come; nothing expires by itself. Limits are
// what the script says: they do not move with use (package simulate's do).
//
// It never judges the code under test: what a request should have looked like is for
// the test to say.
package upstreamtest
