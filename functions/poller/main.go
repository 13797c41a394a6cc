// Command poller is the Lambda on a schedule: each event is one round of looks at usage
// endpoints and of renewals, and after it the figures of the fleet, the metrics and the
// accounts' alarms, whoever in the fleet made the round. Figures and metrics are lines of its
// log. Its environment is HOLDFAST_TABLE, HOLDFAST_KMS_KEY_ID, HOLDFAST_ALARM_TOPIC,
// HOLDFAST_POLLER_ALARM, HOLDFAST_LOG_LEVEL and the SDK's own AWS_* variables; the owner's
// settings are in the table.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"holdfast/internal/aws/cloud"
	"holdfast/internal/aws/cloudwatch"
	"holdfast/internal/aws/lambdahttp"
	"holdfast/internal/core/metric"
	"holdfast/internal/logging"
	"holdfast/internal/provider"
	"holdfast/internal/provider/all"
	"holdfast/internal/store"
	"holdfast/internal/store/vault"
	"holdfast/internal/upkeep/poll"
	"holdfast/internal/upkeep/refresh"
)

// version is set when the function is built.
var version = "dev"

func main() {
	log := slog.New(logging.New(os.Stdout, logging.Level(os.Getenv("HOLDFAST_LOG_LEVEL"))))
	poller, err := build(log)
	if err != nil {
		log.Error("start", "error", err)
		log.Error("stop", "error", errors.Join(err, lambdahttp.ReportInit(err)))
		os.Exit(1)
	}
	// Whatever the schedule's event says, it means one round.
	lambda.Start(poller.round)
}

// poller is what an invocation uses.
type poller struct {
	*poll.Poller
	table string
	watch *cloudwatch.Watch
}

// round makes one round and reports it. An error fails the invocation, so that the
// platform counts it; what can be told is told all the same.
func (p *poller) round(ctx context.Context) error {
	report, err := p.Round(ctx)
	switch {
	case err != nil:
		p.Log.Error("round", "error", err)
	case report.Skipped != "":
		p.Log.Info("no round", "reason", report.Skipped)
	}
	fleet, failed := p.Fleet(ctx)
	if failed != nil { // without the store there is nothing to tell: the silence is heard
		p.Log.Error("measure", "error", failed)
		return errors.Join(err, failed)
	}
	fleet.Table = p.table
	p.Log.Info("fleet", "figures", metric.FiguresOf(fleet))
	for _, line := range metric.Lines(fleet.Now, metric.OfFleet(fleet)) {
		_, _ = os.Stdout.Write(append(line, '\n')) // a log that takes nothing takes no error either
	}
	if failed := p.watch.Keep(ctx, fleet.Now, fleet.Catalog.Accounts); failed != nil {
		p.Log.Error("keep alarms", "error", failed)
		err = errors.Join(err, failed)
	}
	return err
}

// build wires the function. It contacts nobody: the data key is opened while the platform
// brings the first event.
func build(log *slog.Logger) (*poller, error) {
	name := os.Getenv("HOLDFAST_TABLE")
	if name == "" {
		return nil, errors.New("HOLDFAST_TABLE is not set: it names the table")
	}
	cfg, err := cloud.Environment()
	if err != nil {
		return nil, fmt.Errorf("read the environment: %w", err)
	}
	table := cloud.Open(cfg, name, cloud.Key(os.Getenv("HOLDFAST_KMS_KEY_ID")))
	go func() { _, _ = table.Box(context.Background()) }() // an error is told by the first round
	known, providers := store.New(table), all.Providers()
	logins, err := refresh.New(refresh.Options{
		Store:    known,
		OpenBox:  func(ctx context.Context) (refresh.Box, error) { return table.Box(ctx) },
		Renewers: provider.Renewers(providers),
		Log:      log,
		Version:  version,
	})
	if err != nil {
		return nil, err
	}
	rounds, err := poll.New(poll.Options{
		Store:     known,
		OpenBox:   func(ctx context.Context) (vault.Box, error) { return table.Box(ctx) },
		Lookers:   provider.Lookers(providers),
		Refresher: logins,
		Log:       log,
		Version:   version,
	})
	if err != nil {
		return nil, err
	}
	return &poller{rounds, name, cloudwatch.New(cfg, name, os.Getenv("HOLDFAST_ALARM_TOPIC"), os.Getenv("HOLDFAST_POLLER_ALARM"))}, nil
}
