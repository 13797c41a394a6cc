package command

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/event"
	"holdfast/internal/status"
	"holdfast/internal/store"
)

// How often followed events are looked for: each look reads what is stored, which costs money
// where that is a table.
const (
	followEvery      = 2 * time.Second
	followTableEvery = 30 * time.Second
)

func (c *cli) eventsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "events", Short: "List what happened: cooldowns, moves, switches, parked accounts, commands",
		Long: "List what happened, the oldest first, a sentence each: cooldowns that began or were ended by newer evidence,\n" +
			"accounts that were parked or came back, windows that were reset early, what a provider refuses, conversations\n" +
			"that moved and why, switches under policy order, and the owner's own commands. Events are kept for 30 days.",
		Args: exactly(""),
	}
	since := cmd.Flags().String("since", "1d", "how far back, such as 2h or 7d; 30d at most")
	only := cmd.Flags().String("account", "", "those of this account only, by its name")
	follow := cmd.Flags().Bool("follow", false, "go on and print what happens, until interrupted")
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		back, ok := catalog.Duration(*since)
		if !ok || back > store.EventsFor {
			return usageError(fmt.Sprintf("--since takes a time of 30 days at most, such as 2h or 7d, not %q", *since))
		}
		return c.with(cmd.Context(), func(d *data) error {
			e := eventList{cli: c, data: d, only: *only, json: *asJSON}
			return e.print(cmd.Context(), c.Now().Add(-back), *follow)
		})
	}
	return cmd
}

// happened is an event for programs.
type happened struct {
	At      time.Time  `json:"at"`
	Kind    event.Kind `json:"kind"`
	Account string     `json:"account,omitempty"`
	From    string     `json:"from,omitempty"`
	What    string     `json:"what,omitempty"`
	Scope   string     `json:"scope,omitempty"`
	Until   *time.Time `json:"until"`
	Text    string     `json:"text"`
}

// switched is the kind of a switch, which the events do not hold themselves.
const switched event.Kind = "switch"

type eventList struct {
	*cli
	*data
	only string
	json bool
	// printed is the newest instant of what was printed, and the texts of that instant.
	printed time.Time
	texts   []string
}

func (e *eventList) print(ctx context.Context, since time.Time, follow bool) error {
	every := followEvery
	if e.table != "" {
		every = followTableEvery
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		all, dropped, err := e.read(ctx, since)
		if err != nil {
			return err
		}
		if err := e.write(all, dropped, follow); err != nil || !follow {
			return err
		}
		if n := len(all); n > 0 {
			since = all[n-1].At
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// read gathers events and switches since an instant.
func (e *eventList) read(ctx context.Context, since time.Time) ([]happened, int, error) {
	now := e.Now()
	conf, err := e.data.catalog(ctx)
	if err != nil {
		return nil, 0, err
	}
	if e.only != "" {
		if _, err := conf.Named(e.only); err != nil {
			return nil, 0, err
		}
	}
	name := func(id account.ID) string {
		for _, a := range conf.Accounts {
			if a.ID == id {
				return a.Name
			}
		}
		return "a removed account"
	}
	events, dropped, err := e.Events(ctx, since, now)
	if err != nil {
		return nil, 0, err
	}
	var all []happened
	for _, v := range events {
		h := happened{At: v.At, Kind: v.Kind, What: v.What, Scope: v.Scope, Text: v.Sentence(name)}
		if v.Account != "" {
			h.Account = name(v.Account)
		}
		if v.From != "" {
			h.From = name(v.From)
		}
		if !v.Until.IsZero() {
			h.Until = &v.Until
		}
		all = append(all, h)
	}
	for _, p := range account.Providers {
		history, err := e.Switches(ctx, p)
		if err != nil {
			return nil, 0, err
		}
		for _, s := range history {
			v := status.SwitchOf(p, s)
			if v.At.Before(since) || v.At.After(now) {
				continue
			}
			all = append(all, happened{At: v.At, Kind: switched, Account: v.To.Account, From: v.From.Account, What: string(v.Reason),
				Text: fmt.Sprintf("new conversations of %s go to %s instead of %s (%s)", p, v.To.Text(), v.From.Text(), v.Reason)})
		}
	}
	if e.only != "" {
		all = slices.DeleteFunc(all, func(h happened) bool { return h.Account != e.only && h.From != e.only })
	}
	slices.SortStableFunc(all, func(a, b happened) int { return a.At.Compare(b.At) })
	return all, dropped, nil
}

func (e *eventList) write(all []happened, dropped int, follow bool) error {
	fresh := slices.DeleteFunc(slices.Clone(all), func(h happened) bool {
		return h.At.Before(e.printed) || h.At.Equal(e.printed) && slices.Contains(e.texts, h.Text)
	})
	if e.json && !follow {
		if fresh == nil {
			fresh = []happened{}
		}
		return writeJSON(e.Stdout, fresh)
	}
	if len(all) == 0 && !follow {
		e.say("Nothing happened.")
	}
	for _, h := range fresh {
		if !h.At.Equal(e.printed) {
			e.printed, e.texts = h.At, nil
		}
		e.texts = append(e.texts, h.Text)
		if e.json {
			if err := json.NewEncoder(e.Stdout).Encode(h); err != nil {
				return err
			}
			continue
		}
		if _, err := fmt.Fprintf(e.Stdout, "%s  %s\n", h.At.Format("2006-01-02 15:04:05Z"), status.Plain(h.Text)); err != nil {
			return err
		}
	}
	if dropped > 0 && !follow {
		e.say("There was no room for %d more.", dropped)
	}
	return nil
}
