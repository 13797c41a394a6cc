// Package poll looks, on a schedule, at what no answer tells: how much of an account's
// allowance is used while it is silent, while it cools, or where its answers say nothing.
// It renews logins ahead of time, and keeps the history that forecasts are made of.
//
// # Words
//
// A look is a question to a provider's usage endpoint. A round goes over all accounts once:
// it looks at those that are due, renews the logins that are past half of their life, saves
// grants that could not be saved before, and writes points of history and who serves.
// Every account has a clock of its own (store.Clock), which says when it may be looked at
// next. An account is watched if its provider has a usage endpoint for it. Fleet reads what
// is measured of all accounts, whoever made the last round.
//
// # What it decides
//
// Plan, which is pure, says who is looked at: accounts whose provider has a usage endpoint
// for them, once their clock is due, and only if their answers told nothing of the allowance
// for a while, or never do, or a spent window or guarded overage keeps them out of use. An
// account that is parked for funds is looked at now and then, since the look can end that;
// one that is parked for its credential is not. Read and Failed, pure as well, set the clock
// afterwards: the setting poll_interval and up to a fifth more, so that accounts do not fall
// into step; after failures the interval doubles, up to half an hour, whatever the endpoint
// asks for. Asked for by the owner, a round looks at everybody but those it backs off from.
//
// # What a look does
//
// A reading is folded into the account's state, dated by when it arrived. A look that failed
// changes nothing but the clock: it blocks nobody, and what was known stays known. A refused
// access token is renewed once and asked with once more; parking an account whose login is
// lost is the refresher's to do, not a look's. Where a provider has a second way to ask, it
// is tried in the same turn, unless the credential was refused.
//
// # One at a time
//
// A lease makes one round at a time of all processes that share a store; who does not get it
// reports that and does nothing. Clocks are set before the first look, so that a process that
// dies in a round does not ask again a minute later. Turns run beside each other, each with
// a bound and a recover of its own: an account that is slow, or makes the program panic,
// keeps no other waiting. What a round did not come to is due in the next.
//
// # Never
//
// No model is called, by no way. No renewal is begun that the rest of the process's time
// might not suffice for. No error and no log line repeats an answer or a secret.
package poll
