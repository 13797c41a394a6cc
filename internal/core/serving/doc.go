// Package serving decides who serves: the account that policy order gives new
// conversations to, and what is written down when that changes.
//
// # Words
//
// The serving account of a provider is the one that policy order would give a new
// conversation without a wish of its own: of no model family, needing no feature, from a
// client key that may use every account. It is a function of the instant, the policy, what
// is known of the accounts and, where all are passed over, of who served last. A switch is a change of it. The
// record holds who served when it was last looked at, and the newest switches; older ones
// are the past.
//
// # What a switch says
//
// When, from whom, to whom, how full both were, a mode and a reason. Of several reasons
// the first that applies is given:
//
//	returned  the new one stands before the old one in the list, stood before it then too,
//	          and has room again: it would serve whatever became of the old one
//	order     the same, but it did not stand before the old one then: the owner put it there,
//	          or ended its draining
//	parked    the old one needs its owner
//	order     the old one is drained, or has left the list
//	cooldown  the old one cools, or pauses
//	quota     the old one is at the threshold or over it
//
// The mode is manual for reason order, what the owner did by hand to the list, and reorder
// for all others: a change of the threshold does not change the list. An account is named as it
// was then, also after it is gone.
//
// The first account that ever serves is no switch, since nobody served before. Neither is
// it when nobody can serve: the record keeps the last one, and the switch comes with the
// next that can.
//
// # One switch, one entry
//
// Many processes look, and they know things at different instants. A record is replaced
// only if it is still the one that was looked at, and whoever finds it changed looks at it
// again: by then it mostly says what was to be written. What is known less well than what
// the record was made from writes nothing: an older catalog, or a reading of the store that
// began before the record was made. So a process that has not yet seen a change never
// undoes it in the history.
//
// # What it never does
//
// No I/O, no clock of its own. It picks nobody (package pick), announces nothing, and does
// not know any provider.
package serving
