// Package functionurl stands for a streaming Lambda Function URL on one machine: it serves
// HTTP, makes events of requests, has a function answer them, and streams the answers.
//
//	front, err := functionurl.New(functionurl.Options{Binary: "bootstrap", Env: os.Environ()})
//	defer front.Close()
//	http.Serve(listener, front)
//
// # Words
//
// A front is what clients speak to. An environment is one process of the function, with a
// Runtime API of its own on the loopback address; it serves one request at a time, is kept
// for the next, and there are as many as requests at once. An event, an invocation and a
// prelude are what package lambdahttp calls so.
//
// # What is kept of the platform
//
// Events have payload format 2.0, with the same lines between text and base64, and at most
// 6 MiB: above that the front answers 413 and the function hears nothing. A function that
// fails, crashes or sends no answer is a 502, one too many at once a 429. Headers that are
// the platform's own come out as X-Amzn-Remapped-*. A stream that ends in error trailers, a
// process that dies and a timeout break the client's connection, so that nobody takes the
// answer for whole. The client's leaving is not told to the function, which runs on, unless
// Options.TellLeave is set. An idle environment may be frozen (Options.Freeze).
//
// # What is not
//
// There is neither TLS nor HTTP/2 nor authentication (AuthType NONE); no limit of memory,
// bandwidth or the size of answers; and what the platform does where its documentation says
// nothing is a guess: the status at a timeout before the first byte (504 here), and what a
// client sees of a broken stream.
//
// With Options.Endpoint the function runs elsewhere, behind an Invoke API such as that of
// `sam local start-lambda`. Such emulators buffer: the answer comes when the function ends,
// and a stream that was cut looks whole.
package functionurl
