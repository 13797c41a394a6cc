package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"holdfast/internal/logging"
	"holdfast/internal/request/gateway"
	"holdfast/internal/upkeep/refresh"
)

const (
	defaultAddress = "127.0.0.1:8787"
	// stopWithin is how long running requests may go on after a stop was asked for.
	stopWithin = 30 * time.Second
	// headerWithin and idleWithin bound a client's patience with its own connection.
	headerWithin = 10 * time.Second
	idleWithin   = 3 * time.Minute
	// mostHeader bounds a request's header, in bytes. Real clients send a few thousand.
	mostHeader = 64 << 10
)

func (c *cli) serveCommand() *cobra.Command {
	var address string
	var demo, try bool
	cmd := &cobra.Command{
		Use: "serve", Short: "Serve the gateway and look at usage, until interrupted",
		Long: "Serve the gateway, and look at usage endpoints beside it, until interrupted. Running streams then may go on\n" +
			"for 30 seconds; a second interrupt ends them at once. Log lines go to standard error, as JSON.",
		Args: exactly(""),
	}
	cmd.Flags().StringVar(&address, "addr", defaultAddress, "where to listen")
	cmd.Flags().BoolVar(&demo, "demo", false, "serve two simulated accounts, apart from your own: no provider is asked")
	cmd.Flags().BoolVar(&try, "try", false, "for a first look: take "+c.variableNames()+" as accounts of providers that have none; without any account do as --demo; print how to call it")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if c.table != "" && (demo || try) {
			return usageError("--demo and --try are for a first look on this machine alone; they do not go with --table")
		}
		if demo && try {
			return usageError("give --demo or --try, not both: --demo is always the simulation, and --try is it only where you have no account")
		}
		return c.serve(cmd.Context(), address, demo, try)
	}
	return cmd
}

// logger writes log lines to standard error, from HOLDFAST_LOG_LEVEL on.
func (c *cli) logger() (*slog.Logger, error) {
	const variable = "HOLDFAST_LOG_LEVEL"
	level := slog.LevelInfo
	if text, ok := c.LookupEnv(variable); ok && text != "" {
		if err := level.UnmarshalText([]byte(text)); err != nil {
			return nil, usageError(variable + " is one of debug, info, warn, error")
		}
	}
	return slog.New(logging.New(c.Stderr, level)), nil
}

func (c *cli) serve(ctx context.Context, address string, demo, try bool) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	log, err := c.logger()
	if err != nil {
		return err
	}
	listener, err := listen(ctx, address)
	if err != nil {
		return err
	}
	defer listener.Close() // for the ways out before serving; closing twice does no harm
	url := urlOf(listener.Addr())

	d, err := c.prepare(ctx, url, demo, try)
	if err != nil {
		return err
	}
	logins, err := c.refresher(d, log)
	if err != nil {
		return errors.Join(err, d.Close())
	}
	poller, err := c.poller(d, logins, log)
	if err != nil {
		return errors.Join(err, d.Close())
	}
	handler, err := gateway.New(gateway.Options{
		Store: d.Store, OpenBox: func(ctx context.Context) (gateway.Box, error) { return d.box(ctx) }, Providers: c.Providers,
		Renew: logins.Renew, Log: log, Now: c.Now, Advise: c.asTyped,
	})
	if err != nil {
		return errors.Join(err, d.Close())
	}
	stopped := keepCounts(ctx, handler, log)
	rescued := keepRescuing(ctx, logins, log)
	stopPolling, polled := c.keepPolling(ctx, poller, logins, log)
	err = c.serveOn(ctx, listener, handler, log, stopPolling)
	polled()
	rescued()
	stopped()
	handler.Close()
	last, done := context.WithTimeout(context.WithoutCancel(ctx), renewalWithin)
	defer done()
	return errors.Join(err, logins.Close(last), d.Close())
}

const (
	// countEvery is how often counts of kept pins are written that no touch has carried.
	countEvery = time.Minute
	// countWithin bounds the last time, when the program ends.
	countWithin = 5 * time.Second
	// renewalWithin bounds the end of a login's renewal that runs when the program ends. It
	// is longer than one takes: what is cut off there may cost the login.
	renewalWithin = time.Minute
)

// keepCounts has the gateway write its counts now and then. What it returns ends that, and
// has them written once more.
func keepCounts(ctx context.Context, handler *gateway.Gateway, log *slog.Logger) func() {
	stop := make(chan struct{})
	var done sync.WaitGroup
	flush := func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), countWithin)
		defer cancel()
		if err := handler.Flush(ctx); err != nil {
			log.Warn("what was counted is not written; it is kept in memory and written later", "error", err)
		}
	}
	done.Go(func() {
		tick := time.NewTicker(countEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				flush()
			case <-stop:
				flush()
				return
			}
		}
	})
	return func() { close(stop); done.Wait() }
}

// rescueEvery is how often a server looks for renewals of logins that another process of this
// machine began and did not live to end. It is well within what issuers forgive.
const rescueEvery = 5 * time.Second

// keepRescuing ends such renewals, now and then. What it returns stops it.
func keepRescuing(ctx context.Context, logins *refresh.Refresher, log *slog.Logger) func() {
	ctx, stop := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(rescueEvery)
		defer tick.Stop()
		for {
			if err := logins.Rescue(ctx); err != nil && ctx.Err() == nil {
				log.Warn("end a renewal that another process began", "error", err)
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	})
	return func() { stop(); done.Wait() }
}

// serveOn serves on a listener until ctx ends or the program is interrupted, and prints that it does.
// stopping are called when it begins to stop, while running requests may still go on.
func (c *cli) serveOn(ctx context.Context, listener net.Listener, handler http.Handler, log *slog.Logger, stopping ...func()) error {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerWithin,
		IdleTimeout:       idleWithin,
		MaxHeaderBytes:    mostHeader,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	for _, f := range stopping {
		server.RegisterOnShutdown(f)
	}
	c.warnOfPublic(listener.Addr())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, stopSignals()...)
	defer signal.Stop(signals)
	c.say("holdfast is listening on %s", urlOf(listener.Addr()))
	return c.serveUntilStopped(ctx, server, listener, signals, stopWithin)
}

// serveUntilStopped serves until ctx ends or a signal comes, and then lets what runs end,
// within a limit.
func (c *cli) serveUntilStopped(ctx context.Context, server *http.Server, listener net.Listener, signals <-chan os.Signal, within time.Duration) error {
	requests, expire := context.WithCancel(context.WithoutCancel(ctx))
	defer expire()
	server.BaseContext = func(net.Listener) context.Context { return requestTime{requests} }
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	case <-signals:
	}
	c.say("holdfast is stopping: running requests have %s; a second interrupt ends them at once", within)
	patience, give := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer give()
	go func() {
		select {
		case <-signals:
			give()
		case <-patience.Done():
		}
	}()
	if err := server.Shutdown(patience); err != nil {
		c.say("holdfast has ended requests that were still running")
		expire()
		last, done := context.WithTimeout(context.WithoutCancel(ctx), farewellWithin)
		defer done()
		if err := server.Shutdown(last); err != nil {
			return server.Close()
		}
	}
	return nil
}

// farewellWithin is how long requests have to say that they were cut.
const farewellWithin = time.Second

// requestTime is the context of all requests. It ends by a deadline's error, as a request
// whose time is up knows it: so it is told to its client, and not taken for the client's
// own leaving.
type requestTime struct{ context.Context }

func (r requestTime) Err() error {
	if r.Context.Err() != nil {
		return context.DeadlineExceeded
	}
	return nil
}

// Value hides the context within, which would pass its own error on.
func (requestTime) Value(any) any { return nil }

// listen opens the address, or says in a sentence why not.
func listen(ctx context.Context, address string) (net.Listener, error) {
	const shape = "--addr is a host and a port, such as " + defaultAddress
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, usageError(shape)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return nil, usageError(shape + "; a port is a number from 0 to 65535")
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s is in use already, perhaps by another holdfast; stop that one, or choose another port with --addr", address)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("%s is no address of this machine; choose another with --addr", host)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("listening on port %s is not allowed to this user; choose one above 1023 with --addr", port)
	case err != nil:
		return nil, fmt.Errorf("listen on %s: %w; choose another address with --addr", address, err)
	}
	return listener, nil
}

// urlOf is how this machine reaches a listener.
func urlOf(a net.Addr) string {
	at, err := netip.ParseAddrPort(a.String())
	if err != nil || !at.Addr().IsUnspecified() {
		return "http://" + a.String()
	}
	return fmt.Sprintf("http://127.0.0.1:%d", at.Port())
}

// warnOfPublic says what it means to be reached from elsewhere.
func (c *cli) warnOfPublic(a net.Addr) {
	at, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return
	}
	if text := reachable(at); text != "" {
		c.say("%s", text)
	}
}

// reachable says that other machines can reach a listener; empty where none can.
func reachable(at netip.AddrPort) string {
	where := at.String()
	switch {
	case at.Addr().IsLoopback():
		return ""
	case at.Addr().IsUnspecified():
		where = fmt.Sprintf("port %d at every address of this one", at.Port())
	}
	return fmt.Sprintf("Other machines can reach %s, and client keys and conversations travel there unencrypted. Put TLS in front, or listen for this machine alone with --addr %s:%d.", where, "127.0.0.1", at.Port())
}
