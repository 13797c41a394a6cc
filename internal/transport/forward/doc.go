// Package forward makes one upstream attempt and carries its answer to the client.
//
// Out: Outgoing builds the headers that go upstream. Every inbound credential, cookie,
// X-Holdfast header, hop-by-hop header and forwarding header is gone from them; the one
// credential that goes out is put in afterwards, so that no client can have it stripped
// by naming it in Connection. The body goes out byte for byte. Back: Returning filters
// the answer's headers, Relay copies its body as it comes, every read flushed.
//
// # Time
//
// Dialling, the TLS handshake, the wait for headers and the silence between two reads
// have limits of their own; the whole has none, except the time that a platform gives
// (Relay.Client's deadline). During silence a stream of events is kept alive by what its
// clients ignore, and only between two events. A client that stops reading is given up after
// a while, and so is an upstream that keeps its connection open behind an answer that is over.
//
// # Never
//
// It never sends a body a second time, unless the server proves that it did not take it
// (package roundtrip): what may be sent again, and where, is decided by package placement. It never decides what an answer means (the provider's package does),
// and it never turns a cut answer into one that ends well.
package forward
