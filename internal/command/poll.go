package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"holdfast/internal/core/account"
	"holdfast/internal/provider"
	"holdfast/internal/status"
	"holdfast/internal/store/vault"
	"holdfast/internal/upkeep/poll"
	"holdfast/internal/upkeep/refresh"
)

func (c *cli) pollCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "poll", Short: "Ask every account's usage endpoint now",
		Long: "Make one round of the poller: ask every account's usage endpoint now, whatever its turn, except those that are\n" +
			"backed off from because they refused lately; renew logins that are due. A round that is running is waited for.\n" +
			"API keys have no usage endpoint; no model is ever called. The exit status is 0 when the round was made.",
		Args: exactly(""),
	}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx, stop := unhurried(cmd.Context())
		defer stop()
		return c.with(ctx, func(d *data) error { return c.poll(ctx, d, *asJSON) })
	}
	return cmd
}

// poll makes a round for all accounts and prints what it found.
func (c *cli) poll(ctx context.Context, d *data, asJSON bool) error {
	quiet := slog.New(slog.DiscardHandler) // the listing says it
	logins, err := c.refresher(d, quiet)
	if err != nil {
		return err
	}
	poller, err := c.poller(d, logins, quiet)
	if err != nil {
		return err
	}
	report, err := poller.RoundOfAll(ctx, func() { c.say("Another round is running; waiting for it.") })
	if err := c.saveLogins(ctx, logins); err != nil {
		return err
	}
	if err != nil {
		return err
	}
	if err := c.writePoll(report, asJSON); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return errors.New("interrupted; who was not reached is due in the next round")
	}
	return nil
}

func (c *cli) writePoll(report poll.Report, asJSON bool) error {
	if asJSON {
		return writeJSON(c.Stdout, polledOf(report))
	}
	if len(report.Accounts) == 0 {
		_, err := fmt.Fprintln(c.Stdout, c.asTyped(status.NoAccounts))
		return err
	}
	return c.printAsTyped(func(w io.Writer) error {
		var rows [][]string
		var below []string
		for _, f := range report.Accounts {
			told, trouble := lookText(f, report.At)
			rows = append(rows, []string{f.Account.Name, string(f.Account.Provider), string(f.Result), told})
			for _, line := range trouble {
				below = append(below, f.Account.Name+": "+line)
			}
		}
		if err := writeTable(w, "ACCOUNT PROVIDER LOOK TOLD", rows); err != nil {
			return err
		}
		for _, line := range below { // whole: it says what to do
			if _, err := fmt.Fprintln(w, line); err != nil {
				return err
			}
		}
		return nil
	})
}

// lookText is what a look brought, in a few words, and the sentences on what went wrong.
func lookText(f poll.Finding, at time.Time) (told string, trouble []string) {
	var parts []string
	switch f.Result {
	case poll.WasRead:
		for _, w := range status.WindowsOf(f.Reading, at) {
			parts = append(parts, w.Name+" "+w.Text(at))
		}
	case poll.Unwatched:
		parts = append(parts, "no usage endpoint")
		if f.Trouble != "" {
			parts[0] = f.Trouble
		} else if f.Account.Kind == account.Key {
			parts[0] += " for keys"
		}
	case poll.Parked:
		parts = append(parts, "it waits for its owner")
	case poll.BackingOff:
		parts = append(parts, "next try in "+status.Span(f.Clock.NextAt.Sub(at)))
		trouble = append(trouble, status.Plain(f.Trouble))
	case poll.HasFailed:
		parts = append(parts, "what was known stays known")
		trouble = append(trouble, status.Plain(f.Trouble))
	case poll.NotReached:
		parts = append(parts, "the round ended before it had answered")
	default: // nobody is fresh or waits where everybody is asked
	}
	switch {
	case f.RenewTrouble != "":
		parts = append(parts, "login not renewed")
		if line := "its login was not renewed: " + status.Plain(f.RenewTrouble); !strings.Contains(strings.Join(trouble, "\n"), status.Plain(f.RenewTrouble)) {
			trouble = append(trouble, line)
		}
	case f.Renewed:
		parts = append(parts, "login renewed")
	}
	return status.Plain(strings.Join(parts, ", ")), trouble
}

// polled is the round in --json.
type polled struct {
	At       time.Time       `json:"at"`
	Accounts []polledAccount `json:"accounts"`
}

type polledAccount struct {
	Name     string           `json:"name"`
	Provider account.Provider `json:"provider"`
	Result   poll.Result      `json:"result"`
	// Windows are what the look told; null where there was none.
	Windows []status.Window `json:"windows"`
	Error   string          `json:"error,omitempty"`
	// NextAt is the earliest instant of the next look; null where there was never one.
	NextAt     *time.Time `json:"next_at"`
	Renewed    bool       `json:"renewed"`
	RenewError string     `json:"renew_error,omitempty"`
}

func polledOf(r poll.Report) polled {
	p := polled{At: r.At.UTC().Truncate(time.Second), Accounts: []polledAccount{}}
	for _, f := range r.Accounts {
		a := polledAccount{
			Name: f.Account.Name, Provider: f.Account.Provider, Result: f.Result, Error: f.Trouble, Renewed: f.Renewed, RenewError: f.RenewTrouble,
		}
		if f.Result == poll.WasRead {
			a.Windows = status.WindowsOf(f.Reading, r.At)
		}
		if !f.Clock.NextAt.IsZero() {
			at := f.Clock.NextAt.UTC().Truncate(time.Second)
			a.NextAt = &at
		}
		p.Accounts = append(p.Accounts, a)
	}
	return p
}

// refresher renews the logins of this process, and logs it.
func (c *cli) refresher(d *data, log *slog.Logger) (*refresh.Refresher, error) {
	return refresh.New(refresh.Options{
		Store: d.Store, OpenBox: func(ctx context.Context) (refresh.Box, error) { return d.box(ctx) },
		Renewers: provider.Renewers(c.Providers), Now: c.Now, Log: log, Version: c.Build.Version, Presence: d.presence,
	})
}

// poller makes the rounds of this process.
func (c *cli) poller(d *data, logins *refresh.Refresher, log *slog.Logger) (*poll.Poller, error) {
	return poll.New(poll.Options{
		Store: d.Store, OpenBox: func(ctx context.Context) (vault.Box, error) { return d.box(ctx) },
		Lookers: provider.Lookers(c.Providers), Refresher: logins, Log: log, Now: c.Now, Version: c.Build.Version,
	})
}

const (
	// pollEvery is how often a server makes a round, if nobody else does, lengthened or
	// shortened by up to pollSpread; the first comes within pollFirst of its start.
	pollEvery  = time.Minute
	pollSpread = 5 * time.Second
	pollFirst  = 3 * time.Second
	// saveTries is how often a renewed login is tried to be saved before the program ends,
	// a second apart.
	saveTries = 10
)

// keepPolling makes rounds in the background until stop is called, which ends a round that
// runs. wait waits for that, and has renewed logins saved that are not yet.
func (c *cli) keepPolling(ctx context.Context, p *poll.Poller, logins *refresh.Refresher, log *slog.Logger) (stop, wait func()) {
	rounds, stop := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		pause := rand.N(pollFirst)
		for {
			timer := time.NewTimer(pause)
			select {
			case <-timer.C:
			case <-rounds.Done():
				timer.Stop()
				return
			}
			report, err := p.Round(rounds)
			switch {
			case rounds.Err() != nil:
			case err != nil:
				log.Error("round", "error", err)
			case report.Skipped != "":
				log.Debug("no round", "reason", report.Skipped)
			}
			pause = pollEvery - pollSpread + rand.N(2*pollSpread)
		}
	})
	return stop, func() {
		stop()
		done.Wait()
		if err := c.saveLogins(ctx, logins); err != nil {
			log.Error("save renewed logins", "error", err)
		}
	}
}

// saveLogins has renewed logins saved that are not yet, and waits for the store for a
// while: their old tokens are spent.
func (c *cli) saveLogins(ctx context.Context, logins *refresh.Refresher) error {
	ctx = context.WithoutCancel(ctx)
	var err error
	for try := 0; logins.Unsaved() > 0; try++ {
		if try == saveTries {
			return fmt.Errorf("a login was renewed and could not be saved; it may have to be given again with `holdfast account login NAME`: %w", errors.Join(err, errUnsaved))
		}
		if try > 0 {
			timer := time.NewTimer(time.Second)
			<-timer.C
		}
		err = logins.Retry(ctx)
	}
	return nil
}

var errUnsaved = errors.New("the store did not take it")
