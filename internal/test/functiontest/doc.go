// Package functiontest gives tests the gateway's Lambda on this machine: the program of
// functions/gateway, built as a deployment builds it, on a table of its own in a stand-in
// AWS account, behind a Function URL, with accounts at a scripted upstream.
//
//	b := functiontest.New(t)
//	one := b.Account("one", 0.20)
//	f := b.Serve()
//	got := f.Do(functiontest.Request{Session: "a conversation"})
//
// # Words
//
// A bench is the owner's side: table, accounts, client keys; it speaks to AWS directly. A
// function is a Function URL with the processes behind it; it speaks to AWS through the
// bench's front, where its calls are counted and can go wrong. Idle processes are frozen, as
// they are on Lambda.
//
// A deployment is the whole stack, as the SAM CLI deploys it into a stand-in account that
// enforces the roles; its functions are run by that account, each environment for as long
// as it is used.
//
// The program has no secret in what it writes: every bench looks for its own at the end.
//
// It needs what package awstest needs, and is for tests alone.
package functiontest
