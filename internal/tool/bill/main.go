// Command bill prints what a holdfast in AWS costs, from what it does.
//
//	go run ./internal/tool/bill             1, 3, 6 and 12 accounts, 100,000 requests a month
//	go run ./internal/tool/bill -stream 60s -memory 256 -requests 20000
//
// It runs the gateway and the poller as the functions wire them, on a store that counts what
// it is asked for, with accounts at an upstream of its own: requests of every kind, and a
// day of rounds. It counts units of reads and writes by the sizes of the records, bytes of
// log lines that were written, series of metrics by the hours in which they are written, and
// alarms, also those of infra/. Package
// cost has the prices.
//
// What cannot be counted is an assumption, and printed as such: how many requests there are
// and of which kind, how long they stream, how large they are, and how long a function takes
// to start. Answers stream from nowhere and nothing waits, so it says nothing of time.
//
// It speaks to nobody, needs no AWS account, and writes nothing.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	a := assumptions{}
	flag.Float64Var(&a.memory, "memory", 128, "memory of the gateway's function in MB")
	flag.DurationVar(&a.stream, "stream", 30*time.Second, "how long an answer streams")
	flag.DurationVar(&a.round, "round", 500*time.Millisecond, "how long a round of the poller takes")
	flag.DurationVar(&a.start, "start", 300*time.Millisecond, "how long a function takes to start")
	flag.Float64Var(&a.cold, "cold", 0.02, "share of invocations that start a process")
	flag.Float64Var(&a.body, "body", 200_000, "bytes of a request as it goes to the provider")
	flag.Float64Var(&a.answer, "answer", 20_000, "bytes of an answer")
	flag.Float64Var(&a.requests, "requests", 100_000, "requests in a busy month")
	infra := flag.String("infra", "infra", "the folder with the alarms and the dashboard of a deployment")
	flag.Parse()
	if err := run(a, *infra); err != nil {
		fmt.Fprintln(os.Stderr, "bill:", err)
		os.Exit(1)
	}
}

func run(a assumptions, infra string) error {
	static, err := readDeployment(os.DirFS(infra))
	if err != nil {
		return err
	}
	var all []counted
	for _, f := range fleets {
		c, err := count(context.Background(), f, static)
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		all = append(all, c)
	}
	return report(os.Stdout, a, all)
}
