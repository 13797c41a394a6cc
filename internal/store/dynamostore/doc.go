// Package dynamostore keeps records in one DynamoDB table, for holdfast in AWS.
//
// # The table
//
// Its only key is pk, a string: kind, '#', id. Attributes of an item, all but pk absent
// where they have nothing to say:
//
//	revision    N  rises by one with every Put; absent if nothing was ever put
//	body        B
//	expires_ms  N  milliseconds since 1970
//	ttl         N  seconds since 1970, from DeleteAfter: DynamoDB's own tidying, days late
//	count       N  what Add counted
//	write       B  a number drawn for each Put: how a Put knows its own work
//
// CreateTable makes it for tests; an owner's is made by the deployment.
//
// # Round trips
//
// Get is one strongly consistent BatchGetItem for up to 100 keys. Put, Add and Delete are
// one conditional write each, and a write that loses brings the winner's record back in
// its refusal. List scans the whole table. So the permissions needed are BatchGetItem,
// UpdateItem, DeleteItem and Scan.
//
// # What may be repeated
//
// An attempt that ends without an answer (a cut connection, a timeout, a server's error)
// may have been applied. Each call is tried twice at most:
//
//   - Get and List, whatever happened.
//   - Put, whatever happened: if the first attempt was applied, the second is refused by
//     its own condition, and finds in what refused it the number that it wrote. If it
//     finds another's, and that does not prove that the first attempt was not applied, the
//     call ends with ErrUnavailable, which promises nothing.
//   - Add and Delete, only if the first attempt was certainly not applied, as when the
//     table throttles or nobody listens. So nothing is ever counted twice.
//
// Keys that DynamoDB leaves unprocessed are asked for again until the context ends.
//
// # Time
//
// Nothing waits longer than the context allows, nor a second for an answer, so that a
// connection that died in a pause is replaced in time. A context without a deadline is
// given store.CallTimeout. Pauses between attempts are 20 milliseconds at most.
package dynamostore
