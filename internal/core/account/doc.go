// Package account is the pure heart of holdfast: what an account is, what its
// answers say about it, and whether it may serve at an instant.
//
// # Words
//
// A provider is one of anthropic, openai, xai. An account is one credential with
// limits of its own there, under a name the owner chose. A window is one limit that
// fills and resets; its utilization is a fraction (0 empty, 1 full, above 1
// possible). A reading is what an answer or a look at a usage endpoint said about
// windows, with the instant that it describes. A rejection is an upstream "no", already
// classified by the provider's package. What an account refuses is one thing that it does
// not do for now: a feature, a model, a tier of one, or requests larger than a limit; it
// does all else. A block keeps an account, one model family
// on it, or one model on it, out of use until an instant. An account is parked when
// only its owner can make it useful again.
//
// # What it decides
//
// State folds evidence in: Observe for readings, Reject for rejections, Served for
// good answers, LoggedIn for a new credential, Clear for the owner's word. Newer
// evidence wins, per window, block and mark, whichever process folds it and in
// whatever order it comes, so two processes that saw the same answers agree. Values
// are never changed in place; each fold returns a new State. Together joins the states
// of accounts that have the same limits, for decisions and reports; what is stored
// stays apart.
//
// # What it never does
//
// No I/O, no clock of its own, no HTTP, no store. It does not choose among accounts
// (package pick does) and does not know any provider's wire format (the packages
// below provider do).
package account
