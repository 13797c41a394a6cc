// Package sqlitestore keeps records in an SQLite file, for holdfast on one machine.
//
// # Where
//
// A data directory holds holdfast.db and, while it is open, holdfast.db-wal and
// holdfast.db-shm. All are readable by their owner alone. The directory must be on a
// local disk: the processes that share it find each other's writes through shared memory
// and file locks. To copy it, stop holdfast first, or take all of its files at one instant.
//
// # Several processes
//
// A server and any number of commands may have it open at once. Every write is one
// transaction, begun with the write lock in hand; whoever has to wait for that lock waits
// no longer than the call's context. Readers never wait for writers. A record that was
// read before is answered from memory as long as SQLite says that no other process has
// changed the file, which every Get asks anew.
//
// # What survives
//
// Whatever a call answered survives the end of the process, however it ends: the operating
// system has it. Against a loss of power, credentials, the data key and the catalog are
// flushed to the disk before the call answers. Pins and states are not: the last of them,
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
