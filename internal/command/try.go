package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/clientkey"
	"holdfast/internal/core/credential"
	"holdfast/internal/simulate"
)

// Names of what --try and --demo make.
const (
	tryKey  = "try"
	demoDir = "demo"
)

// tryVariables are where --try finds an API key of each provider. The account that it
// makes of one has the provider's name.
var tryVariables = map[account.Provider]string{
	account.Anthropic: "ANTHROPIC_API_KEY",
	account.OpenAI:    "OPENAI_API_KEY",
	account.XAI:       "XAI_API_KEY",
}

// prepare opens the data that a server is to use: the owner's, or for a demonstration
// data of its own. It does and says what --demo and --try promise.
func (c *cli) prepare(ctx context.Context, url string, demo, try bool) (*data, error) {
	if c.table != "" {
		return c.prepareTable(ctx)
	}
	dir, err := c.dataDir()
	if err != nil {
		return nil, err
	}
	if !demo {
		d, err := openData(ctx, dir)
		if err != nil {
			return nil, err
		}
		served, err := c.prepareOwn(ctx, d, dir, url, try)
		if err != nil {
			return nil, errors.Join(err, d.Close())
		}
		if served {
			return d, nil
		}
		if err := d.Close(); err != nil {
			return nil, err
		}
		c.say("There is no account yet, and none of %s is set, so this is a demonstration.", c.variableNames())
	}
	dir = filepath.Join(dir, demoDir)
	d, err := openData(ctx, dir)
	if err != nil {
		return nil, err
	}
	c.dir = dir // what is advised from here on is about this data, not about that which was named
	if err := c.prepareDemo(ctx, d, url); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// prepareTable opens a table, and its box too: a server that cannot read credentials is
// better told of at once than by each request.
func (c *cli) prepareTable(ctx context.Context) (*data, error) {
	d, err := c.openTable(ctx)
	if err != nil {
		return nil, err
	}
	all, err := d.catalog(ctx)
	if err == nil {
		_, err = d.box(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	c.sayOfEmpty(all)
	return d, nil
}

// sayOfEmpty says what is missing for a request to be served.
func (c *cli) sayOfEmpty(all catalog.Catalog) {
	if len(all.Accounts) == 0 {
		c.say("There is no account yet, so every request will be refused. Add one meanwhile: holdfast account add NAME --provider anthropic|openai|xai --key-env VARIABLE")
	} else if len(all.Keys) == 0 {
		c.say("There is no client key yet, so every request will be refused. Create one meanwhile: holdfast key create NAME")
	}
}

// prepareOwn makes the owner's data ready. It is false when --try finds no account and
// none to make.
func (c *cli) prepareOwn(ctx context.Context, d *data, dir, url string, try bool) (bool, error) {
	all, err := d.catalog(ctx)
	if err != nil {
		return false, err
	}
	if !try {
		c.sayOfEmpty(all)
		return true, nil
	}
	for _, p := range account.Providers {
		if _, ok := c.Providers[p]; !ok {
			continue
		}
		if err := c.tryProvider(ctx, d, dir, all, p); err != nil {
			return false, err
		}
	}
	if all, err = d.catalog(ctx); err != nil || len(all.Accounts) == 0 {
		return false, err
	}
	c.sayWhoAnswers(all)
	return true, c.invite(ctx, d, url)
}

// tryProvider makes an account of the provider's variable, where that is set and the
// provider has no account yet. Of a key that is not the account's it tells.
func (c *cli) tryProvider(ctx context.Context, d *data, dir string, all catalog.Catalog, p account.Provider) error {
	variable, name := tryVariables[p], string(p)
	text, ok := c.LookupEnv(variable)
	if !ok || strings.TrimSpace(text) == "" {
		return nil
	}
	a, there := all.Account(name)
	switch {
	case len(all.Of(p)) == 0 && !there:
		text, err := headerSafe(text, "the environment variable "+variable)
		if err != nil {
			return err
		}
		key := obtained{Credential: credential.Credential{Key: credential.NewSecret(text)}, kind: account.Key}
		if err := c.add(ctx, d, account.Account{Name: name, Provider: p}, key); err != nil {
			return err
		}
		c.say("It holds %s, sealed, in %s. Remove it with: holdfast account remove %s", variable, dir, name)
	case there && a.Provider == p && a.Kind == account.Key:
		v, err := d.vault(ctx)
		if err != nil {
			return err
		}
		held, _, err := v.Load(ctx, a.ID)
		if err == nil && held.Key.Reveal() != strings.TrimSpace(text) {
			c.say("%s is not the key that account %s was made of. To use it: holdfast account login %[2]s --key-env %[1]s", variable, name)
		}
	}
	return nil
}

// variableNames are the variables that --try takes keys from, for a sentence.
func (c *cli) variableNames() string {
	var names []string
	for _, p := range account.Providers {
		if _, ok := c.Providers[p]; ok {
			names = append(names, tryVariables[p])
		}
	}
	return strings.Join(names, ", ")
}

// sayWhoAnswers tells a first look from a demonstration.
func (c *cli) sayWhoAnswers(all catalog.Catalog) {
	var names []string
	for _, a := range all.Accounts {
		names = append(names, fmt.Sprintf("%s (%s)", a.Name, a.Kind))
	}
	word := "account"
	if len(names) > 1 {
		word = "accounts"
	}
	c.say("Answers are real, and are charged: %s %s. For the simulation: holdfast serve --demo", word, strings.Join(names, ", "))
}

// prepareDemo starts the simulated provider and puts its accounts into data of their own.
func (c *cli) prepareDemo(ctx context.Context, d *data, url string) error {
	upstream, err := simulate.Start(ctx)
	if err != nil {
		return err
	}
	all, err := d.catalog(ctx)
	if err != nil {
		return err
	}
	for _, simulated := range simulate.Accounts() {
		if _, there := all.Account(simulated.Name); there { // the port is another each time
			_, err = d.change(ctx, func(old catalog.Catalog) (catalog.Catalog, error) {
				return old.SetBaseURL(simulated.Name, upstream)
			})
		} else {
			err = c.add(ctx, d, account.Account{Name: simulated.Name, Provider: account.Anthropic, BaseURL: upstream},
				obtained{Credential: credential.Credential{Key: credential.NewSecret(simulated.Credential)}, kind: account.Key, plan: "simulated", anywhere: true})
		}
		if err != nil {
			return err
		}
	}
	c.say("THIS IS A SIMULATION. No model is asked and no account of yours is used; the answers are made up on this machine.")
	c.say("Only Anthropic is simulated. Codex and the Grok CLI need an account of OpenAI's or xAI's: a key of yours, or a login.")
	return c.invite(ctx, d, url)
}

// invite makes sure of a client key that is the same at every start and prints how to
// use it.
func (c *cli) invite(ctx context.Context, d *data, url string) error {
	box, err := d.box(ctx)
	if err != nil {
		return err
	}
	all, err := d.catalog(ctx)
	if err != nil {
		return err
	}
	held, there := all.Key(tryKey)
	seed := held.Seed
	if !there {
		seed = all.SpentSeed + 1
	}
	// Whoever can read the data key can open everything here; the key of this derivation
	// gives no more away than that, and nobody has to keep a copy of it.
	secret := clientkey.FromSeed(box.Derive(fmt.Sprint("try client key ", seed), 32))
	hash := clientkey.Hash(box, secret.Reveal())
	switch {
	case !there:
		id, err := c.newID()
		if err != nil {
			return err
		}
		key := catalog.ClientKey{ID: id, Name: tryKey, Hash: hash, Seed: seed, Admin: true, CreatedAt: c.Now().UTC().Truncate(time.Second)}
		if _, err := d.change(ctx, func(old catalog.Catalog) (catalog.Catalog, error) { return old.AddKey(key, nil) }); err != nil {
			return err
		}
	case held.Hash != hash:
		c.say("The client key %s is one of your own; use that, or revoke it so that one can be printed here: holdfast key revoke %[1]s", tryKey)
		return nil
	}
	_, err = io.WriteString(c.Stdout, c.asTyped(invitation(all, url, secret.Reveal())))
	return err
}
