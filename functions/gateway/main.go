// Command gateway is the Lambda behind the streaming Function URL: the proxy, on a
// DynamoDB table. Its environment is HOLDFAST_TABLE, HOLDFAST_KMS_KEY_ID,
// HOLDFAST_LOG_LEVEL and the SDK's own AWS_* variables; the owner's settings are in the
// table.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"time"

	"holdfast/internal/aws/cloud"
	"holdfast/internal/aws/lambdahttp"
	"holdfast/internal/core/advice"
	"holdfast/internal/core/metric"
	"holdfast/internal/logging"
	"holdfast/internal/provider"
	"holdfast/internal/provider/all"
	"holdfast/internal/request/gateway"
	"holdfast/internal/store"
	"holdfast/internal/upkeep/refresh"
)

// version is set when the function is built.
var version = "dev"

func main() {
	log := slog.New(logging.New(os.Stdout, logging.Level(os.Getenv("HOLDFAST_LOG_LEVEL"))))
	handler, err := build(log)
	if err != nil {
		log.Error("start", "error", err)
		err = errors.Join(err, lambdahttp.ReportInit(err))
	} else {
		err = lambdahttp.Start(handler, lambdahttp.Options{Log: log})
	}
	log.Error("stop", "error", err)
	os.Exit(1)
}

// build wires the function. It waits for nobody: the data key is opened and the configuration
// read beside each other while the platform brings the first event, so that the first request
// waits for its own read alone.
func build(log *slog.Logger) (http.Handler, error) {
	name := os.Getenv("HOLDFAST_TABLE")
	if name == "" {
		return nil, errors.New("HOLDFAST_TABLE is not set: it names the table")
	}
	cfg, err := cloud.Environment()
	if err != nil {
		return nil, fmt.Errorf("read the environment: %w", err)
	}
	table := cloud.Open(cfg, name, cloud.Key(os.Getenv("HOLDFAST_KMS_KEY_ID")))
	go func() { _, _ = table.Box(context.Background()) }() // an error is told by the first request
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
	handler, err := gateway.New(gateway.Options{
		Store:     known,
		OpenBox:   func(ctx context.Context) (gateway.Box, error) { return table.Box(ctx) },
		Providers: providers,
		Renew:     logins.Renew,
		Log:       log,
		Advise:    advice.Way{Place: " --table " + name}.In,
		Measure: func(r metric.Request) {
			r.Table = name
			measure(r)
		},
	})
	if err != nil {
		return nil, err
	}
	go handler.Prepare(context.Background())
	return handler, nil
}

// measure writes a request's metrics into the log, where the platform reads them.
func measure(r metric.Request) {
	for _, line := range metric.Lines(time.Now(), metric.OfRequest(r)) {
		_, _ = os.Stdout.Write(append(line, '\n')) // a log that takes nothing takes no error either
	}
}
