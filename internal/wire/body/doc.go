// Package body tells what a request body says that the gateway must know, in one pass
// over its bytes.
//
// # What it decides
//
// Inspect says whether a body is one JSON object, valid by the rules that encoding/json
// has (RFC 8259, nesting of at most 10000 levels, any bytes inside strings), and picks
// Facts out of it: the ids a conversation may be known by, what the request asks for, and
// what a fingerprint is made of. It knows the shapes of Anthropic's Messages API and of
// OpenAI's Responses and Chat Completions APIs by their member names alone, and gives
// what it finds of any of them. A member that comes twice counts as it comes last, names
// and texts are compared as decoded, and what is of another type than the wire has there
// counts as absent.
//
// Read takes a body of any content type: JSON is what begins like it, and of a form it reads
// the model. It says where a model could not be read, which differs from a body without
// a model: on a path that two providers share the model decides which of them gets the body.
//
// # Words
//
// A text is a string, or a content part of type text or input_text. A line of system
// text is volatile when it may read differently in the next turn of the same
// conversation (see func volatile); a fingerprint takes the others only. A reminder is
// text between <system-reminder> and its end tag: Claude Code puts it around and among
// the user's own words, and changes it.
//
// # What it never does
//
// It never changes or copies the body, builds no tree of it, and judges nothing but its
// syntax: the rest of its faults are the upstream's to name. It does not decode
// compressed bodies (package coding does) nor choose the conversation's key (package
// conversation does).
//
// # Why a scanner of its own
//
// A body of 1 MB, most of it code in strings, is inspected in 0.53 ms here. On the same
// bytes and machine encoding/json takes 3.1 ms to validate alone; jsontext 0.83 ms to
// hand over the tokens, with the texts still to decode, and its API is not settled yet;
// gjson 0.75 ms to validate and 0.60 ms more to look members up; fastjson 0.59 ms to
// validate alone. Only a walk of our own does all of it in one pass.
// The scanner is held to encoding/json by FuzzInspect, in what it accepts and what it
// finds. BenchmarkInspect measures.
package body
