// Package usage counts what accounts were used for: requests, refusals, moves and tokens, by
// hour, account, model, client key and agent, and says what the tokens would have cost at
// list prices.
//
// # Words
//
// A row is what one account did for one client key, agent and model. An hour is what was
// counted in one hour of UTC; a day is the same for a day, made of its hours once they are a
// week old. An agent is the program that asks, as the first word of its user agent names it.
// Tokens that were read again are those of a prompt that a move sent to an account without
// its cache: they were paid for in full.
//
// # What it holds together
//
// A Tally counts in memory, without a write for a request. Its batches go to the store now and
// then. A batch has the name of its process and a number: a record that has taken it in knows
// that, so a batch whose answer was lost may be sent again and is counted once.
//
// Rows of one hour are bounded (MostRows). What comes beyond is counted in a row whose model,
// key and agent are "other": sums stay exact.
//
// # Never
//
// It does no I/O and has no clock. A model without a known price has no cost, which is not a
// cost of zero.
package usage
