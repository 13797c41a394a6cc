package command

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"holdfast/internal/account"
	"holdfast/internal/catalog"
	"holdfast/internal/clientkey"
	"holdfast/internal/credential"
	"holdfast/internal/simulate"
)

// Names of what --try and --demo make.
const (
	tryKey      = "try"
	tryAccount  = "anthropic"
	tryVariable = "ANTHROPIC_API_KEY"
	demoDir     = "demo"
)

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
		c.say("There is no account yet and %s is not set, so this is a demonstration.", tryVariable)
	}
	dir = filepath.Join(dir, demoDir)
	d, err := openData(ctx, dir)
	if err != nil {
		return nil, err
	}
	if err := c.prepareDemo(ctx, d, url); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	c.say("Look at it with: %s status --data %s", c.program(), dir)
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
		c.say("There is no account yet, so every request will be refused. Add one meanwhile: %s account add NAME --provider anthropic --key-env %s%s", c.program(), tryVariable, c.place())
	} else if len(all.Keys) == 0 {
		c.say("There is no client key yet, so every request will be refused. Create one meanwhile: %s key create NAME%s", c.program(), c.place())
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
	text, ok := c.LookupEnv(tryVariable)
	ok = ok && strings.TrimSpace(text) != ""
	if len(all.Accounts) == 0 {
		if !ok {
			return false, nil
		}
		if text, err = headerSafe(text, "the environment variable "+tryVariable); err != nil {
			return false, err
		}
		key := obtained{Credential: credential.Credential{Key: credential.NewSecret(text)}, kind: account.Key}
		if err := c.add(ctx, d, account.Account{Name: tryAccount, Provider: account.Anthropic}, key); err != nil {
			return false, err
		}
		c.say("It holds %s, sealed, in %s. Remove it with: %s account remove %s", tryVariable, dir, c.program(), tryAccount)
	} else if a, there := all.Account(tryAccount); there && ok && a.Kind == account.Key {
		v, err := d.vault(ctx)
		if err != nil {
			return false, err
		}
		held, _, err := v.Load(ctx, a.ID)
		if err == nil && held.Key.Reveal() != strings.TrimSpace(text) {
			c.say("%s is not the key that account %s was made of. To use it: %s account login %[2]s --key-env %[1]s", tryVariable, tryAccount, c.program())
		}
	}
	if err := c.sayWhoAnswers(ctx, d); err != nil {
		return false, err
	}
	return true, c.invite(ctx, d, url)
}

// sayWhoAnswers tells a first look from a demonstration.
func (c *cli) sayWhoAnswers(ctx context.Context, d *data) error {
	all, err := d.catalog(ctx)
	if err != nil {
		return err
	}
	var names []string
	for _, a := range all.Accounts {
		names = append(names, fmt.Sprintf("%s (%s)", a.Name, a.Kind))
	}
	word := "account"
	if len(names) > 1 {
		word = "accounts"
	}
	c.say("Answers are real, and are charged: %s %s. For the simulation: %s serve --demo", word, strings.Join(names, ", "), c.program())
	return nil
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
				obtained{Credential: credential.Credential{Key: credential.NewSecret(simulated.Credential)}, kind: account.Key, plan: "simulated"})
		}
		if err != nil {
			return err
		}
	}
	c.say("THIS IS A SIMULATION. No model is asked and no account of yours is used; the answers are made up on this machine.")
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
		c.say("The client key %s is one of your own; use that, or revoke it so that one can be printed here: %s key revoke %[1]s", tryKey, c.program())
		return nil
	}
	_, err = fmt.Fprintf(c.Stdout, invitation, url, secret.Reveal(), ExampleModel)
	return err
}

// ExampleModel is the model of examples: one that a newcomer's key can use today.
const ExampleModel = "claude-sonnet-5"

const invitation = `
Try it, from another terminal:

  curl %[1]s/v1/messages \
    -H "x-api-key: %[2]s" \
    -H "anthropic-version: 2023-06-01" -H "content-type: application/json" \
    -d '{"model":"%[3]s","max_tokens":100,"messages":[{"role":"user","content":"Hello"}]}'

  ANTHROPIC_BASE_URL=%[1]s ANTHROPIC_AUTH_TOKEN=%[2]s claude

  curl -H "x-api-key: %[2]s" %[1]s/_holdfast/status.json

`
