package command

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/pick"
	"holdfast/internal/core/placement"
	"holdfast/internal/provider"
	"holdfast/internal/request/conversation"
	"holdfast/internal/store"
	"holdfast/internal/wire/body"
)

// inferencePaths are where each provider takes an ordinary request for a model.
var inferencePaths = map[account.Provider]string{
	account.Anthropic: "/v1/messages",
	account.OpenAI:    "/v1/responses",
	account.XAI:       "/v1/responses",
}

func (c *cli) pickCommand() *cobra.Command {
	var providerName, model string
	var of named
	cmd := &cobra.Command{
		Use: "pick --provider P --model M", Short: "Explain which account a new conversation would go to now",
		Long: "Explain which account a new conversation with a model would go to now, and why not to the others, for the\n" +
			"client that is the provider's own where its logins serve no other. Nothing is sent and nothing changes. Of a\n" +
			"conversation that has an account (--conversation) it says what becomes of that.",
		Args: exactly(""),
	}
	cmd.Flags().StringVar(&providerName, "provider", "", "the provider: "+c.providerNames())
	cmd.Flags().StringVar(&model, "model", "", "the model, as a client names it")
	cmd.Flags().StringVar(&of.conversation, "conversation", "", "a conversation, by its X-Holdfast-Conversation or by its client's session id: where it is pinned; it decides, too, between accounts that are alike")
	cmd.Flags().StringVar(&of.key, "key", "", "the client key that the conversation is of, by its name")
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if providerName == "" || model == "" {
			return usageError(c.asTyped("say for which provider and model, such as: holdfast pick --provider anthropic --model MODEL"))
		}
		if of.key != "" && of.conversation == "" {
			return usageError("--key says whose conversation it is: add --conversation NAME")
		}
		p, err := c.providerOf(providerName)
		if err != nil {
			return err
		}
		return c.with(cmd.Context(), func(d *data) error {
			e, err := c.explain(cmd.Context(), d, p, model, of)
			if err != nil {
				return err
			}
			if *asJSON {
				return writeJSON(c.Stdout, e)
			}
			return c.writeExplanation(e)
		})
	}
	return cmd
}

// explanation is a decision with what it was about.
type explanation struct {
	Provider account.Provider `json:"provider"`
	Model    string           `json:"model"`
	Family   string           `json:"family,omitempty"`
	Policy   string           `json:"policy"`
	// Account is the name of the chosen one; null when none exists.
	Account    *string     `json:"account"`
	Reason     pick.Reason `json:"reason"`
	Candidates []pick.Part `json:"candidates"`
	// Pins are those that the conversation has: one, or where no client key is named, one for
	// each key that has a conversation of this name.
	Pins []pinned `json:"pins,omitempty"`

	// ownOnly: some accounts serve the provider's own client alone, and are shown as it finds
	// them.
	ownOnly bool
	// anyKey: a conversation was named and its client key was not, so that what decides
	// between accounts that are alike is not known.
	anyKey bool
}

// named is a conversation by its name and by the name of its client key, either empty.
type named struct{ conversation, key string }

// keys are the client keys that a conversation may be of; all of them where none is named.
func (n named) keys(all []catalog.ClientKey) ([]catalog.ClientKey, error) {
	if n.key == "" {
		return all, nil
	}
	i := slices.IndexFunc(all, func(k catalog.ClientKey) bool { return k.Name == n.key })
	if i < 0 {
		return nil, fmt.Errorf("no client key %q; `holdfast key list` shows them", n.key)
	}
	return all[i : i+1], nil
}

// hashed is the conversation's key as the gateway has it for a client key.
func (n named) hashed(k catalog.ClientKey, p account.Provider, r provider.Request) string {
	return conversation.Identify(k.ID, p, n.conversation, r, body.Facts{}).Key
}

// pinned is the pin that a conversation has, and what its next request does to it.
type pinned struct {
	ClientKey string `json:"client_key"`
	// Account is empty where that account was removed.
	Account string    `json:"account,omitempty"`
	Bound   bool      `json:"bound"`
	Until   time.Time `json:"until"`
	// Next is kept, moved or refused; To is the account that serves it, and RetryAt when a
	// refused one makes sense again; null when that is not known.
	Next    string     `json:"next"`
	To      string     `json:"to,omitempty"`
	RetryAt *time.Time `json:"retry_at,omitempty"`
}

// next says what the gateway would do with the next request of a pinned conversation.
func next(s placement.Situation, key string) pinned {
	out := pinned{ClientKey: key, Bound: s.Pin.Bound, Until: s.Pin.ExpiresAt.UTC().Truncate(time.Second), Next: "refused"}
	for _, c := range s.Candidates {
		if c.Account.ID == s.Pin.Account {
			out.Account = c.Account.Name
		}
	}
	plan := placement.Begin(s)
	if plan.Step != placement.Serve {
		if at := plan.Refusal.RetryAt.UTC(); !at.IsZero() {
			out.RetryAt = &at
		}
		return out
	}
	out.To, out.Next = s.Candidates[plan.Chosen].Account.Name, "kept"
	if out.To != out.Account {
		out.Next = "moved"
	}
	return out
}

func (p pinned) text() string {
	on := p.Account
	if on == "" {
		on = "an account that was removed"
	}
	text := fmt.Sprintf("The conversation of client key %s is pinned to %s; the pin ends at %s if nothing more comes.", p.ClientKey, on, p.Until.Format(time.RFC3339))
	switch p.Next {
	case "kept":
		return text + " It stays there."
	case "moved":
		return text + fmt.Sprintf(" That account cannot serve it now: its next request moves it to %s.", p.To)
	}
	if p.RetryAt != nil {
		return text + fmt.Sprintf(" It waits for that account until %s.", p.RetryAt.Format(time.RFC3339))
	}
	return text + " Its next request is refused: that account cannot serve it now, and no other may or can. `holdfast status` says what is needed."
}

// decidedBy says in a sentence what each word means that decides.
var decidedBy = map[pick.Reason]string{
	pick.ByTrial:       "an account of which nothing was read yet gets its first conversations, a few of them",
	pick.ByScore:       "the highest score",
	pick.ByReset:       "the week that resets soonest, among accounts with room",
	pick.ByOrder:       "the first of your list that is not passed over",
	pick.OverThreshold: "all are at the threshold, so the least full one serves",
	pick.LastResort:    "all wait for a reset, so the least full one is asked all the same",
}

// scores say what SCORE is under each policy; higher goes first.
var scores = map[catalog.PolicyName]string{
	catalog.Score:        "the sum of TERMS, and compares accounts with the same NOTE",
	catalog.SoonestReset: "minus the hours to the weekly reset; accounts without one come after those that have it",
	catalog.Order:        "minus how full its fullest window is; your list decides, not the score",
}

func (c *cli) explain(ctx context.Context, d *data, p account.Provider, model string, of named) (explanation, error) {
	snap, err := d.Snapshot(ctx, false)
	if err != nil {
		return explanation{}, err
	}
	accounts, states := snap.Catalog.Of(p), store.Together(c.Now(), snap.Catalog.Accounts, snap.States)
	if len(accounts) == 0 {
		return explanation{}, fmt.Errorf("there is no account of %s; add one with `holdfast account add NAME --provider %[1]s --key-env VARIABLE`", p)
	}
	wire := c.Providers[p]
	path, header := inferencePaths[p], http.Header{}
	own, ownOnly := wire.(provider.OwnClient)
	if ownOnly {
		header = own.OwnHeader()
	}
	request := wire.Inspect(http.MethodPost, path, header, body.Facts{Model: model})
	keys, err := of.keys(snap.Catalog.Keys)
	if err != nil {
		return explanation{}, err
	}
	query := store.Query{Serving: []account.Provider{p}}
	if of.conversation != "" {
		for _, k := range keys {
			query.Pins = append(query.Pins, of.hashed(k, p, request))
		}
	}
	view, err := d.Read(ctx, query)
	if err != nil {
		return explanation{}, err
	}
	// Of several keys none is known to be the one that asks.
	known := len(keys) == 1 && of.conversation != ""
	candidatesFor := func(k catalog.ClientKey) []pick.Candidate {
		candidates := pick.Candidates(accounts, store.Known(states), view.Serving[p].Account)
		for i := range candidates {
			c := &candidates[i]
			c.Serves, c.Allowed = wire.Serves(c.Account.Kind, path, header, request), k.Allows(c.Account.ID)
		}
		return candidates
	}
	asked := pick.Request{Family: request.Family, Model: request.Model, Features: request.Features, Tier: request.Tier}
	policy, settings := snap.Catalog.PolicyOf(p), snap.Catalog.Settings()
	var pins []pinned
	for i, k := range keys {
		if of.conversation == "" {
			break
		}
		of := asked
		of.Key, of.Background = query.Pins[i], k.Background
		if held, ok := view.Pins[of.Key]; ok && held.Live(c.Now()) {
			pins = append(pins, next(placement.Situation{
				Now: c.Now(), Policy: policy, Settings: settings, Request: of, Candidates: candidatesFor(k), Pin: &held, Pins: true,
			}, k.Name))
		}
	}
	var by catalog.ClientKey
	if known {
		by, asked.Key = keys[0], query.Pins[0]
	}
	decision := pick.Pick(c.Now(), policy, settings, asked, candidatesFor(by))
	e := explanation{
		Provider: p, Model: model, Family: request.Family, Policy: string(policy.Name), Reason: decision.Reason, Candidates: decision.Parts, Pins: pins,
	}
	e.ownOnly = ownOnly && slices.ContainsFunc(accounts, func(a account.Account) bool { return a.Kind == account.Subscription })
	e.anyKey = of.conversation != "" && !known
	if decision.Chosen >= 0 {
		e.Account = &accounts[decision.Chosen].Name
	}
	return e, nil
}

func (c *cli) writeExplanation(e explanation) error {
	for _, p := range e.Pins {
		fmt.Fprintln(c.Stdout, c.asTyped(p.text()))
	}
	if e.Pins != nil {
		fmt.Fprint(c.Stdout, "A new conversation: ")
	}
	if e.Account == nil {
		fmt.Fprintf(c.Stdout, "No account can take a new conversation with %s now.\n", e.Model)
	} else {
		fmt.Fprintf(c.Stdout, "%s (policy %s, decided by %s)\n", *e.Account, e.Policy, e.Reason)
	}
	var rows [][]string
	for _, part := range e.Candidates {
		terms := ""
		if t := part.Terms; t != (pick.Terms{}) {
			terms = fmt.Sprintf("expiring %s, pace %s, short %s, model %s, load %s", figure(t.Expiring), figure(t.Pace), figure(t.Short), figure(t.Model), figure(t.Load))
		}
		score := ""
		if part.Passed == "" {
			score = figure(part.Score)
		}
		rows = append(rows, []string{part.Account, score, string(part.Passed), strings.TrimSpace(part.Note), terms})
	}
	if err := writeTable(c.Stdout, "ACCOUNT SCORE PASSED-OVER NOTE TERMS", rows); err != nil {
		return err
	}
	text := "SCORE is " + scores[catalog.PolicyName(e.Policy)] + "."
	if why := decidedBy[e.Reason]; why != "" {
		text += " Decided by " + string(e.Reason) + ": " + why + "."
	}
	if e.anyKey {
		text += " Accounts that are alike are shown in your order: for a conversation it depends on its client key too, so name that with --key NAME."
	}
	if e.ownOnly {
		text += " Logins of " + string(e.Provider) + " serve their provider's own client, which this is shown for; of others they are not-served, and those need a key."
	}
	_, err := fmt.Fprintln(c.Stdout, text)
	return err
}

// figure prints a figure to a thousandth; what rounds to zero has no sign.
func figure(v float64) string { return strings.Replace(fmt.Sprintf("%.3f", v), "-0.000", "0.000", 1) }
