// Package pick chooses an account for a new conversation, and says of any account
// whether it can be used at an instant.
//
// # Words
//
// A candidate is an account of the provider with what is known of it. Its standing says
// whether it is usable, else why not and until when. A policy ranks the usable ones. A
// window binds a request when it is the whole account's or the request's family's own.
// An account is at the line when a binding window is at exclude_line or over, at its cap
// when one is at 1 or over or was last read as rejected, and unread when there was never
// a reading. A window counts as empty past its reset, and where it was read as full
// without a reset, five minutes after that.
//
// A candidate refuses what it was refused lately: a feature, a model, a tier of one, or
// requests larger than a limit. It is passed over for what asks for that, and for nothing
// else. What was placed on it stays counted as load, so that a refusal attracts nobody.
//
// # Policy score
//
// The usable candidates fall into five ranks; the first that is not empty decides:
//
//  1. unread accounts that have had fewer than trial_requests conversations; the one
//     that has had the fewest,
//  2. read accounts below the line,
//  3. read accounts at the line,
//  4. read accounts at their cap,
//  5. the other unread accounts.
//
// Within ranks 2 to 5 the highest score wins. It is a sum of
//
//	expiring  weight_expiring × room × elapsed
//	pace      weight_pace     × clamp(target − u, −1, 1), target = (1 − reserve) × elapsed
//	short     weight_short    × 1 while the five-hour window is below short_window_line,
//	                            falling in a straight line to 0 at exclude_line
//	model     weight_model    × −(room for the default families), for a request whose
//	                            model is among expensive_models; 0 for others
//	load      −0.2 × n / max(headroom, 0.01)
//
// u is the utilization of the weekly window, room is 1 − u and never below 0, elapsed is
// the share of its week that has passed: 0 when its reset is unknown or past, because not
// every provider starts the next week by itself. Where a family's weekly window binds the
// request too, each term takes the worse of the two; where none is known it is 0. An
// unknown five-hour window counts as empty.
//
// The room for the default families is 1 minus the fullest weekly window of a family that
// default_models names, 0 where such a family is blocked, and 1 where nothing is known.
// Windows that bind the request itself are left out: they would reward being full. A
// pattern names a family when it matches it, or has it as a word: "*sonnet*" and
// "claude-sonnet-*" both name sonnet. Patterns are those of path.Match, in any case.
//
// n counts the conversations placed on the account that no reading can show yet. Many
// picks within a second so spread in proportion to headroom.
//
// Freshness: with f = 1 up to an age of fresh_for, then fresh_for ÷ age, every term but
// load becomes mean + f × (term − mean), the mean being that of the usable candidates
// that have a reading.
//
// # A worked example
//
// Default settings, readings a minute old, an ordinary model:
//
//	         weekly  resets in  elapsed  five-hour
//	marlow   0.30     42 h      0.75     0.20
//	juniper  0.10    126 h      0.25     0.85
//
//	         expiring             pace                          short                       sum
//	marlow   0.70 × 0.75 = 0.525  0.85×0.75 − 0.30 = 0.3375     1                           1.8625
//	juniper  0.90 × 0.25 = 0.225  0.85×0.25 − 0.10 = 0.1125     (0.97−0.85)÷0.17 = 0.7059   1.0434
//
// marlow serves: much of its week is about to be lost. After three conversations that no
// reading shows yet its load is −0.2 × 3 ÷ 0.70 = −0.8571, its score 1.0054, and the
// fourth goes to juniper.
//
// # Policy soonest-reset
//
// Ranks: trials as above, but of logins only, since a key has no week to be found out;
// accounts below the line with a weekly window, the soonest reset first (a reset that is
// unknown or past counts as a week away); accounts below the line without one, the least
// load first; accounts at the line, the least full first; the other unread ones.
//
// # Policy order
//
// The owner's list from the top. An account is passed over when it is not usable, or when
// a binding window is at the policy's threshold or over. An unread account keeps its
// place. When all are passed over, the least full of those that are merely over the
// threshold serves; when none exists, the least full of those that cool, whose answer is
// then the client's. Of either kind the one that serves already goes on until another is
// less full by five points: serving does not flip with every conversation. A block that guards paid overage is never overridden, and so are a
// parking, a drain and what the account cannot do.
//
// # Ties
//
// Scores are compared in steps of 0.01. Ties go by a hash of conversation key and account
// id: the choice is stable and does not depend on the order of the candidates. Without a
// key, and under policy order, ties go by the owner's order. Values that are not finite
// never win.
//
// # What it never does
//
// No I/O, no clock of its own. It does not move pinned conversations (package placement),
// it writes nothing down, and it does not know any provider.
package pick
