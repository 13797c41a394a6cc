// Command poller is the Lambda on a schedule: each event is one round of looks at usage
// endpoints and of renewals. Its environment is HOLDFAST_TABLE, HOLDFAST_KMS_KEY_ID,
// HOLDFAST_LOG_LEVEL and the SDK's own AWS_* variables; the owner's settings are in the
// table.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"holdfast/internal/account"
	"holdfast/internal/cloud"
	"holdfast/internal/lambdahttp"
	"holdfast/internal/logging"
	"holdfast/internal/poll"
	"holdfast/internal/provider"
	"holdfast/internal/provider/anthropic"
	"holdfast/internal/provider/openai"
	"holdfast/internal/provider/xai"
	"holdfast/internal/refresh"
	"holdfast/internal/store"
	"holdfast/internal/vault"
)

// version is set when the function is built.
var version = "dev"

func main() {
	log := slog.New(logging.New(os.Stdout, level()))
	poller, err := build(log)
	if err != nil {
		log.Error("start", "error", err)
		log.Error("stop", "error", errors.Join(err, lambdahttp.ReportInit(err)))
		os.Exit(1)
	}
	// Whatever the schedule's event says, it means one round.
	lambda.Start(func(ctx context.Context) error { return round(ctx, poller, log) })
}

// round makes one round. An error fails the invocation, so that the platform counts it.
func round(ctx context.Context, p *poll.Poller, log *slog.Logger) error {
	report, err := p.Round(ctx)
	switch {
	case err != nil:
		log.Error("round", "error", err)
	case report.Skipped != "":
		log.Info("no round", "reason", report.Skipped)
	}
	return err
}

// build wires the function. It contacts nobody: the data key is opened while the platform
// brings the first event.
func build(log *slog.Logger) (*poll.Poller, error) {
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
	known, providers := store.New(table), map[account.Provider]provider.Provider{
		account.Anthropic: anthropic.Provider{},
		account.OpenAI:    openai.Provider{},
		account.XAI:       xai.Provider{},
	}
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
	return poll.New(poll.Options{
		Store:     known,
		OpenBox:   func(ctx context.Context) (vault.Box, error) { return table.Box(ctx) },
		Lookers:   provider.Lookers(providers),
		Refresher: logins,
		Log:       log,
		Version:   version,
	})
}

func level() (l slog.Level) {
	_ = l.UnmarshalText([]byte(os.Getenv("HOLDFAST_LOG_LEVEL"))) // unset, or no level: info
	return l
}
