// Command holdfast is the gateway on one machine, with an embedded store or a DynamoDB
// table, and the operator's commands. What it can do is package command's; here it only
// meets its surroundings, the providers there are, and AWS.
package main

import (
	"context"
	"crypto/rand"
	"os"
	"runtime/debug"
	"time"

	"holdfast/internal/aws/cloud/profile"
	"holdfast/internal/command"
	"holdfast/internal/provider/all"
)

// version is set when a release is built.
var version = "dev"

func main() {
	info, _ := debug.ReadBuildInfo()
	os.Exit(command.Run(context.Background(), os.Args[1:], command.Options{
		Build:     command.BuildOf(version, info),
		Program:   os.Args[0],
		Providers: all.Providers(),
		Stdin:     os.Stdin,
		Stdout:    os.Stdout,
		Stderr:    os.Stderr,
		LookupEnv: os.LookupEnv,
		Environ:   os.Environ,
		OpenTable: func(ctx context.Context, name string) (command.Table, error) {
			return profile.Open(ctx, name)
		},
		Now:    time.Now,
		Random: rand.Reader,
	}))
}
