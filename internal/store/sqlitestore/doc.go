// Package sqlitestore keeps records in an SQLite file, for holdfast on one machine.
//
// # Where
//
// A data directory holds holdfast.db and, while it is open, holdfast.db-wal and
// holdfast.db-shm. All are readable by their owner alone. The directory must be on a
// local disk: the processes that share it find each other's writes through shared memory
// and file locks. To copy it, stop holdfast first, or take all of its files at one instant.
// To put a copy back, stop holdfast too, and take away what is left of the three files: a
// log would be taken for the copy's own.
//
// # Several processes
//
// A server and any number of commands may have it open at once. Every write is one
// transaction, begun with the write lock in hand; whoever has to wait for that lock waits
// no longer than the call's context. Readers never wait for writers. A record that was
// read before is answered from memory as long as SQLite says that no other process has
// changed the file, which every Get asks anew.
//
// A process that keeps the write lock, such as another program in the middle of a
// transaction, holds up every write until the caller's patience ends. Requests then stream
// as ever, but the end of an answer that touches a pin or teaches something comes late by
// that patience, two seconds: what is written beside an answer is waited for, so that a
// stop loses none of it.
//
// # Trouble
//
// What is no whole store is refused and left as it is: a file that ends too early; one
// that is empty or missing, where a file made later, such as a key, shows that there was
// one. Damage within pages shows when they are read.
//
// An open file goes on working when its name is taken from it, for the processes that have
// it and for no other. So calls look the name up, once a second at most, and answer
// ErrUnavailable from then on where it is gone or another file's. No other file is used or
// made in its place before a new start. What was written since the last look is lost.
//
// # What survives
//
// Whatever a call answered survives the end of the process, however it ends: the operating
// system has it. Against a loss of power, credentials, renewals, the data key and the
// catalog are flushed to the disk before the call answers. Pins and states are not: the last of them,
// back to when the log was last flushed, may be gone, though never half of one and never
// an earlier one without the later ones. A lost pin costs a cached prefix, a lost reading
// comes again with the next answer; a rotated credential would be lost for good.
//
// # What it never does
//
// It judges no expiry. It deletes what is past DeleteAfter by the machine's clock, a few
// hundred records at a time, now and then, in the wake of a write and never before it. It
// upgrades no file that a newer holdfast wrote, and repairs none.
package sqlitestore
