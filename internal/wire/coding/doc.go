// Package coding reads compressed bodies on a side copy. The bytes that are passed on
// stay as they came, with the header that says how they are coded.
//
// # What it decides
//
// Decode turns a request's body into the plain one, to be inspected. Tap reads an answer
// while it passes by, to learn usage and errors from it. Both know gzip, zstd, br and
// deflate (with the zlib header that RFC 9110 asks for, and without, as some senders have
// it), and lists of up to three of them.
//
// # Words
//
// A coding is one of those words, as Content-Encoding lists them in the order in which
// they were applied. Plain is what is left once all are undone.
//
// # Limits
//
// The plain body, and every step towards it, is bounded by the caller's limit; what grows
// beyond is given up as soon as it does. A zstd frame that needs a window of more than
// 8 MiB is refused, which RFC 9659 lets an HTTP receiver do; the largest window of br is
// 16 MiB by its format. Undoing one coding takes no more memory than its window and some
// ten KiB.
//
// # What it never does
//
// It does not compress, and it does not repair: a body that is cut, or that goes on
// behind its end, is corrupt.
package coding
