// Package sse reads server-sent events from a stream that passes by in chunks.
//
// # What it decides
//
// Parser finds the events of a stream by the rules of the WHATWG HTML standard, section
// 9.2 ("Server-sent events"): lines end with LF, CRLF or CR, in any mixture; a data field
// may have a space behind its colon, or none, and may come many times in an event; lines
// that begin with a colon, and fields other than event and data, say nothing here; an
// block without data is not an event; what follows the last blank line is not one either. It also
// knows when a stream stands between two events, where a comment could be put in.
//
// It looks at bytes alone, so it does not matter where chunks begin and end, and what is
// not UTF-8 comes out as it came in.
//
// # Limits
//
// A Parser holds one event at most. Of the data of one over 64 KiB it tells an excerpt
// (package excerpt): all streams that are read here have JSON for data, and what they say of
// themselves stands beside what is large. Where such data are not JSON, only the name is told.
//
// # What it never does
//
// It never changes the stream: what a client gets are the bytes that were sent, and the
// Parser sees them on the side. It does not know what events mean (a provider's package
// does), and it does not decompress (package coding does).
package sse
