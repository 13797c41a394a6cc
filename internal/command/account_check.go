package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast/internal/core/account"
	"holdfast/internal/core/checkup"
	"holdfast/internal/core/credential"
	"holdfast/internal/core/pin"
	"holdfast/internal/provider"
	"holdfast/internal/status"
	"holdfast/internal/store"
	"holdfast/internal/upkeep/poll"
)

// watchedFor is how far back readings and requests of ours are compared: pins report a
// day's requests, and not of more.
const watchedFor = 23 * time.Hour

// checked is the look that one takes before relying on an account.
type checked struct {
	shown
	Look lookFacts `json:"look"`
	checkup.Report

	// alone: its provider has no other account.
	alone bool
}

// lookFacts say how fresh the figures are.
type lookFacts struct {
	// At is when the usage was asked for just now; null when it was not, or in vain.
	At *time.Time `json:"at"`
	// Trouble says why not, in words; empty when it was.
	Trouble string `json:"trouble,omitempty"`

	// reading is what it told.
	reading account.Reading
}

// date puts a look's own figures among those that are stored: the store keeps an older
// instant where a look told nothing new.
func (l lookFacts) date(known []status.Window, now time.Time) []status.Window {
	for _, w := range status.WindowsOf(l.reading, now) {
		i := slices.IndexFunc(known, func(k status.Window) bool { return k.Name == w.Name })
		if i >= 0 && !known[i].ObservedAt.After(w.ObservedAt) {
			known[i] = w
		}
	}
	return known
}

func (c *cli) accountCheck() *cobra.Command {
	cmd := &cobra.Command{
		Use: "check NAME", Short: "Look at an account before relying on it",
		Long: "Look at an account before relying on it: its plan, how full each window is, whether its cycle is aligned with\n" +
			"the other accounts', who logged in, whether somebody else seems to use it, when the login ends, and how old\n" +
			"each figure is. Its usage is asked for once, which spends nothing; --no-look leaves that out.",
		Args: exactly("NAME"),
	}
	asJSON := jsonFlag(cmd)
	noLook := cmd.Flags().Bool("no-look", false, "contact nobody: judge by what is stored")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx, stop := unhurried(cmd.Context())
		defer stop()
		return c.with(ctx, func(d *data) error {
			r, err := c.check(ctx, d, args[0], !*noLook)
			if err != nil {
				return err
			}
			if *asJSON {
				return writeJSON(c.Stdout, r)
			}
			return c.writeCheck(r)
		})
	}
	return cmd
}

func (c *cli) check(ctx context.Context, d *data, name string, look bool) (checked, error) {
	a, before, err := d.account(ctx, name)
	if err != nil {
		return checked{}, err
	}
	var r checked
	switch {
	case !look:
		r.Look.Trouble = "they were not asked for"
	default:
		if r.Look, err = c.freshLook(ctx, d, a); err != nil {
			return checked{}, err
		}
	}
	if r.shown, err = c.show(ctx, d, name); err != nil {
		return checked{}, err
	}
	now := c.Now()
	r.Status.Windows = r.Look.date(r.Status.Windows, now)
	snap, err := d.Snapshot(ctx, true)
	if err != nil {
		return checked{}, err
	}
	points, err := d.History(ctx, a.ID, now.Add(-watchedFor), now)
	if err != nil {
		return checked{}, err
	}
	states := d.whose(ctx, snap)
	in := checkup.Input{
		Now: now, Account: a, State: states[a.ID], Owner: r.Credential.Owner, Principal: r.Credential.Principal,
		Points: readings(points, now.Add(-watchedFor), before.State, states[a.ID]),
	}
	for _, s := range snap.Catalog.Of(a.Provider) {
		if s.ID != a.ID {
			in.Siblings = append(in.Siblings, checkup.Sibling{Account: s, State: states[s.ID]})
		}
	}
	r.alone = len(in.Siblings) == 0
	alike := map[account.ID]bool{a.ID: true}
	for _, name := range checkup.SharedWith(in) {
		if s, err := snap.Catalog.Named(name); err == nil {
			alike[s.ID] = true
		}
	}
	used := newWorked(now.Add(-watchedFor), now)
	if _, err := d.EachPin(ctx, func(_ string, p pin.Record) { used.add(a.Provider, alike, p) }); err != nil {
		return checked{}, err
	}
	in.Ours = used.spans()
	r.Report = checkup.Of(in)
	return r, nil
}

// freshLook asks for the usage now and folds in what it tells. What goes wrong is in what
// it returns: the check goes on with older figures.
func (c *cli) freshLook(ctx context.Context, d *data, a account.Account) (lookFacts, error) {
	v, err := d.vault(ctx)
	if err != nil {
		return lookFacts{Trouble: "the credential cannot be opened from here: " + oneLine(err.Error())}, nil
	}
	held, _, err := v.Load(ctx, a.ID)
	if err != nil {
		return lookFacts{Trouble: "the stored credential cannot be opened"}, nil
	}
	if len(c.Providers[a.Provider].Looks(a.Kind, held)) == 0 {
		return lookFacts{Trouble: "there is nothing to ask, since its limits are told with answers only"}, nil
	}
	known, err := d.Poll(ctx)
	if err != nil {
		return lookFacts{}, err
	}
	if clock := known.Clocks[a.ID]; clock.Failures > 0 && c.Now().Before(clock.NextAt) {
		return lookFacts{Trouble: fmt.Sprintf("the usage endpoint refused lately (%s) and is not asked again before %s", status.Plain(clock.Trouble), clock.NextAt.UTC().Format(time.RFC3339))}, nil
	}
	reading, err := c.lookRenewed(ctx, d, a, held)
	if err != nil {
		facts := lookFacts{Trouble: oneLine(poll.Trouble(err))}
		if ctx.Err() != nil {
			return facts, nil // an interrupt is not the endpoint's doing
		}
		return facts, c.lookFailed(ctx, d, a.ID, known, facts.Trouble)
	}
	return lookFacts{At: told(reading.At), reading: reading}, c.learn(ctx, d, a, proof{held: held, reading: reading})
}

// lookFailed sets an account's clock as a round does, so that an endpoint which refuses is not
// asked again at once, by a round or by the next check.
func (c *cli) lookFailed(ctx context.Context, d *data, id account.ID, known store.PollRecord, trouble string) error {
	all, err := d.catalog(ctx)
	if err != nil {
		return err
	}
	now := c.Now()
	_, err = d.ChangePoll(ctx, known, func(p store.Poll) store.Poll {
		clocks := map[account.ID]store.Clock{}
		maps.Copy(clocks, p.Clocks)
		clocks[id] = poll.Failed(clocks[id], now, all.Settings().PollInterval, rand.Float64(), trouble)
		p.Clocks = clocks
		return p
	})
	return err
}

// lookRenewed looks, and renews the login where it has ended or is refused.
func (c *cli) lookRenewed(ctx context.Context, d *data, a account.Account, held credential.Credential) (account.Reading, error) {
	renewed := false
	renew := func() error {
		r, err := c.refresher(d, slog.New(slog.DiscardHandler))
		if err != nil {
			return err
		}
		renewed = true
		held, err = r.Renew(ctx, a, held)
		return errors.Join(err, c.saveLogins(ctx, r))
	}
	if held.Expired(c.Now()) {
		if err := renew(); err != nil {
			return account.Reading{}, err
		}
	}
	reading, _, err := c.look(ctx, a, held)
	if errors.Is(err, provider.ErrCredentialRefused) && !renewed && !held.Refresh.Empty() {
		held = held.Refused()
		if err := renew(); err != nil {
			return account.Reading{}, err
		}
		reading, _, err = c.look(ctx, a, held)
	}
	return reading, err
}

// readings are the figures of a time, oldest first: what was stored every few minutes, and
// what was known before and after the look.
func readings(points []store.Point, since time.Time, states ...account.State) []checkup.Point {
	var list []checkup.Point
	seen := map[string]time.Time{} // the newest reading of each window
	for _, p := range points {
		point := checkup.Point{At: p.At, Windows: map[string]checkup.Figure{}}
		for name, w := range p.Windows {
			point.Windows[name] = checkup.Figure{Utilization: w.Utilization, ResetAt: w.ResetAt}
			seen[name] = p.At
		}
		list = append(list, point)
	}
	for _, s := range states {
		for name, w := range s.Windows {
			at := w.ObservedAt.Truncate(time.Second)
			if w.HasUtilization && at.After(seen[name]) && at.After(since) {
				seen[name] = at
				list = append(list, checkup.Point{At: at, Windows: map[string]checkup.Figure{name: {Utilization: w.Utilization, ResetAt: w.ResetAt}}})
			}
		}
	}
	return list
}

// worked are the minutes in which requests of ours used one of a provider's accounts that have
// the same limits, or may have: as exactly as pins tell it, which count by the hour. It takes
// no more memory for many conversations than for one.
type worked struct {
	since, now time.Time
	minutes    []bool
}

func newWorked(since, now time.Time) *worked {
	return &worked{since, now, make([]bool, int(now.Sub(since)/time.Minute)+1)}
}

// mark marks the minutes that a time touches.
func (w *worked) mark(from, to time.Time) {
	first := max(0, int(from.Sub(w.since)/time.Minute))
	for i := first; i < len(w.minutes) && !w.since.Add(time.Duration(i)*time.Minute).After(to); i++ {
		w.minutes[i] = true
	}
}

// add marks what a conversation of a provider tells. alike are the accounts that share limits.
func (w *worked) add(at account.Provider, alike map[account.ID]bool, p pin.Record) {
	if p.Provider != at {
		return
	}
	if !p.MovedAt.IsZero() {
		w.mark(p.CreatedAt, p.MovedAt) // on which account is not known
	}
	if !alike[p.Account] {
		return
	}
	began := p.CreatedAt
	if p.MovedAt.After(began) {
		began = p.MovedAt
	}
	w.mark(began, began)
	w.mark(p.TouchedAt, p.TouchedAt.Add(pin.TouchEvery(p.ExpiresAt.Sub(p.TouchedAt))))
	for hour := range p.Kept {
		from := time.Unix(hour*3600, 0)
		to := from.Add(time.Hour)
		if to.After(w.now) {
			to = w.now
		}
		w.mark(from, to)
	}
}

// spans are the marked times.
func (w *worked) spans() []checkup.Span {
	var list []checkup.Span
	for i := 0; i < len(w.minutes); i++ {
		if !w.minutes[i] {
			continue
		}
		from := w.since.Add(time.Duration(i) * time.Minute)
		for i < len(w.minutes) && w.minutes[i] {
			i++
		}
		list = append(list, checkup.Span{From: from, To: w.since.Add(time.Duration(i) * time.Minute)})
	}
	return list
}

func (c *cli) writeCheck(r checked) error {
	now := c.Now()
	rows := [][]string{
		{"name", r.Name},
		{"provider", string(r.Provider)},
		{"kind", string(r.Kind)},
		{"plan", planText(r)},
		{"order", fmt.Sprint(r.Order)},
		{"state", r.Status.Standing(now)},
	}
	for _, w := range r.Status.Windows {
		text := w.Text(now)
		if w.ResetsAt != nil {
			text += ", until " + w.ResetsAt.Format(time.RFC3339)
		}
		rows = append(rows, []string{"window " + w.Name, text + "; read " + ago(now.Sub(w.ObservedAt))})
	}
	if len(r.Status.Windows) == 0 {
		rows = append(rows, []string{"windows", "none was read yet"})
	}
	for _, cy := range r.Cycles {
		rows = append(rows, []string{"cycle " + cy.Window, cycleText(cy)})
	}
	switch {
	case len(r.Cycles) > 0:
	case r.alone:
		rows = append(rows, []string{"cycle", "there is no other account of " + string(r.Provider) + " to be aligned with"})
	default:
		rows = append(rows, []string{"cycle", "whether it is aligned with the other accounts cannot be told: no window of a week is known"})
	}
	rows = append(rows, []string{"credential", r.Credential.text(now, r.Name)})
	rows = append(rows, r.Credential.rows(now)...)
	switch {
	case len(r.Owner.SharedWith) > 0:
		rows = append(rows, []string{"shared", "it spends one allowance with " + strings.Join(r.Owner.SharedWith, ", ")})
	case !r.alone:
		rows = append(rows, []string{"shared", "that it spends one allowance with another account is not known"})
	}
	rows = append(rows, []string{"others", othersText(r.Others)})
	look := "asked for just now"
	if r.Look.Trouble != "" {
		look = "no fresh figures: " + r.Look.Trouble
	}
	rows = append(rows, []string{"usage", look})
	if remedy := r.Status.Remedy(); remedy != "" {
		rows = append(rows, []string{"to use it again", remedy})
	}
	if r.Status.Warning != "" {
		rows = append(rows, []string{"warning", r.Status.Warning})
	}
	for _, row := range rows {
		if row[1] == "" {
			row[1] = "-"
		}
		if _, err := fmt.Fprintf(c.Stdout, "%-20s %s\n", row[0], c.asTyped(row[1])); err != nil {
			return err
		}
	}
	return nil
}

func ago(d time.Duration) string {
	if d < time.Second {
		return "just now"
	}
	return status.Span(d) + " ago"
}

func planText(r checked) string {
	text := status.Plain(r.Plan)
	if text == "" {
		text = "not known"
	}
	switch p := r.Plans; {
	case p.Verdict == checkup.Same:
		text += "; the same as the other accounts'"
	case p.Verdict == checkup.Different:
		text += "; another than that of " + strings.Join(p.Different, ", ")
	case len(p.Unknown) > 0:
		text += "; that of " + strings.Join(p.Unknown, ", ") + " cannot be compared"
	}
	return text
}

func cycleText(c checkup.Cycle) string {
	if c.After == nil {
		return "whether it is aligned with " + c.Sibling + " cannot be told: a reset is not known"
	}
	after := time.Duration(*c.After) * time.Second
	if c.Verdict == checkup.Aligned {
		return "aligned with " + c.Sibling
	}
	if after > 0 {
		return "offset: resets " + status.Span(after) + " after " + c.Sibling
	}
	return "offset: resets " + status.Span(-after) + " before " + c.Sibling
}

// quietly ends every verdict on use by others with what it cannot see.
const quietly = " (requests without a conversation leave no trace here)"

func othersText(o checkup.Others) string {
	quiet := status.Span(time.Duration(o.Quiet) * time.Second)
	switch o.Verdict {
	case checkup.Seen:
		r := o.Rises[len(o.Rises)-1]
		return fmt.Sprintf("something else than this gateway seems to use it: %s went from %.0f%% to %.0f%% between %s and %s, without requests of ours%s",
			r.Window, 100*r.Before, 100*r.Afterwards, r.From.Format(time.RFC3339), r.To.Format(time.RFC3339), quietly)
	case checkup.NotSeen:
		return "no sign that anything else uses it: watched for " + quiet + " without requests of ours"
	default:
		return "whether anything else uses it cannot be told: it was watched for " + quiet + " without requests of ours"
	}
}
