// Package e2e holds the end-to-end tests: real coding agents, the real program, and a
// scripted upstream in place of the provider.
//
// # What is real
//
// Claude Code, Codex, the Grok CLI and opencode, at the versions tools.sh names, run as a
// person would run them, with a home folder and environment of their own; beside them the
// official SDKs of OpenAI and Anthropic, within the tests. The program is built from
// functions/local and runs as a process with a data folder on disk, so that it can be
// killed and started again. Only the provider is package upstreamtest.
//
// Between client and program stands a front, which passes everything on and remembers
// what the program answered: what a client heard and how often it asked can be counted
// there, and a client keeps its base URL while programs come and go behind it.
//
//	client → front → holdfast serve → scripted upstream
//
// # Running them
//
// `make test` and `make e2e` install the clients and set HOLDFAST_TEST_TOOLS, the folder
// that has npm/node_modules/.bin with the clients. Plain `go test ./...` leaves these
// tests out, loudly, because it must do without a network; make counts that as a failure.
//
// TestSAMLocal alone needs a container engine, and so has a target of its own, `make
// sam-local`.
//
// # Logins
//
// Subscriptions are added from files as Codex and the Grok CLI keep them, with ids that
// nobody has and tokens that nobody signed. Their upstreams refuse what the real ones do,
// such as reasoning that is encrypted for another account.
//
// No test here measures time. Limits on how long a client may run keep a hanging one from
// hanging the tests.
package e2e
