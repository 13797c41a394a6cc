// Package lambdahttp serves an http.Handler behind a streaming Lambda Function URL.
//
//	handler, err := build()
//	if err != nil {
//		lambdahttp.ReportInit(err)
//		os.Exit(1)
//	}
//	err = lambdahttp.Start(handler, lambdahttp.Options{})
//	… Start came back: the platform cannot be reached; log and exit …
//
// It polls the Runtime API for events, makes a request of each, and sends what the handler
// writes as it is written: a JSON prelude with status, headers and cookies, eight NUL
// bytes, then the body.
//
// # Words
//
// An event is the JSON that the platform makes of a request. An invocation is one event
// under way, with an id and a deadline. The prelude is what stands before the body.
//
// # What a handler may rely on
//
//   - The body is whole and of told length, also where the platform sent it as base64.
//     It may be read until the handler returns.
//   - Path and query are the client's, byte for byte (RequestURI, URL.EscapedPath). Header
//     values that came several times are joined with commas: the platform does that.
//     RemoteAddr has the client's address; its port is not known and is 0.
//   - The header map is read once, at WriteHeader. What net/http leaves out of an answer is
//     left out here too: 1xx, bodies of HEAD, 204 and 304.
//   - Every write leaves at once, so flushing does nothing. There are no deadlines to set.
//   - The context ends with cause ErrDeadline a margin before the platform would kill the
//     process, and with ErrStopped when nobody takes the answer any more; writes fail then.
//     A client that leaves is not seen: the platform does not tell.
//   - lambdacontext.FromContext has the invocation's request id, and the context's value
//     "x-amzn-trace-id" its trace id.
//
// # How an answer ends
//
// As a success only if the handler returned. A panic, http.ErrAbortHandler among them,
// after the first byte ends the stream as an error, which the platform hears in trailers;
// before it, a panic becomes a 500 and ErrAbortHandler a failed invocation, for which the
// URL answers 502. A handler that returns without an answer becomes a 500. The process
// survives all of these; a panic in a goroutine of the handler's own it does not.
//
// A body without any byte gets a line break, because streams without one are known to keep
// clients waiting until the function's timeout.
//
// It never looks into bodies, never retries, and logs neither headers nor bodies. It serves
// one event at a time: Lambda runs a process for each request under way.
package lambdahttp
