package command

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/event"
	"holdfast/internal/store"
	"holdfast/internal/store/seal"
	"holdfast/internal/store/sqlitestore"
	"holdfast/internal/store/vault"
	"holdfast/internal/upkeep/presence"
	"holdfast/internal/upkeep/refresh"
)

// keyFile is the name of the data key's file in a data directory.
const keyFile = "holdfast.key"

// commandWithin bounds each call of the store that a command waits for: nobody else does,
// so a disk that stalls for some seconds does not fail it.
const commandWithin = 15 * time.Second

// presenceDir is where, in a data directory, processes that renew logins know each other by.
const presenceDir = "renewing"

// data is a data directory or a table, opened.
type data struct {
	*store.Store
	// changed: the catalog was changed.
	changed bool
	// box opens what is sealed. For a table it asks a key service, so only those ask for it
	// who need it.
	box func(context.Context) (*seal.Box, error)
	// presence has the processes of a directory know of each other; nil for a table, whose
	// processes are on many machines.
	presence refresh.Presence
	// removeAlarm removes the alarm of an account by its name, and hearSilence turns on the
	// one about a poller that has never made a round. They are nil for a directory, which has
	// no alarms.
	removeAlarm func(context.Context, string) error
	hearSilence func(context.Context, time.Time) (bool, error)
}

// markUnopened marks accounts whose stored credential does not open. Of a table that is not
// looked at: its key service is asked by those commands alone that use a credential.
func (d *data) markUnopened(ctx context.Context, snap store.Snapshot) {
	if d.presence == nil {
		return
	}
	if v, err := d.vault(ctx); err == nil {
		v.Unopened(snap.States, snap.Credentials)
	}
}

func (d *data) vault(ctx context.Context) (vault.Vault, error) {
	box, err := d.box(ctx)
	return vault.Vault{Store: d.Store, Box: box}, err
}

// open opens the table that is named, or else the data directory. Where none exists, it is
// made for a command that makes something; others leave no trace of having looked: a
// directory that was named is refused then, and the owner's own is taken for an empty one.
// Whoever opens calls close in the end.
func (c *cli) open(ctx context.Context) (_ *data, closing func() error, err error) {
	if c.table != "" {
		d, err := c.openTable(ctx)
		return opened(d, err, nil)
	}
	dir, err := c.dataDir()
	if err != nil {
		return nil, nil, err
	}
	if c.makes || holdsData(dir) {
		d, err := openData(ctx, dir)
		if info, failed := os.Stat(dir); err == nil && failed == nil && info.Mode().Perm()&0o022 != 0 {
			c.say("Other users may write in %s, and so replace what is stored there. Take that right away (chmod 700), or keep the data in a directory of its own with --data.", dir)
		}
		return opened(d, err, nil)
	}
	if c.dir != "" {
		return nil, nil, fmt.Errorf("there is no holdfast data in %s; name another directory with --data, or begin here with: holdfast account add NAME --provider anthropic|openai|xai --key-env VARIABLE", dir)
	}
	empty, err := os.MkdirTemp("", "holdfast-")
	if err != nil {
		return nil, nil, fmt.Errorf("there is no holdfast data in %s yet, and no room for an empty one: %w; set TMPDIR to a folder that you can write to, or begin with `holdfast account add`", dir, err)
	}
	d, err := openData(ctx, empty)
	return opened(d, err, func() error { return os.RemoveAll(empty) })
}

// opened is what open returns: data with what closes it and does what is left to do then.
func opened(d *data, err error, then func() error) (*data, func() error, error) {
	if then == nil {
		then = func() error { return nil }
	}
	if err != nil {
		return nil, nil, errors.Join(err, then())
	}
	return d, func() error { return errors.Join(d.Close(), then()) }, nil
}

// holdsData reports whether something of holdfast's was ever kept in a directory, or whether
// that cannot be told.
func holdsData(dir string) bool {
	for _, name := range []string{sqlitestore.File, keyFile} {
		if _, err := os.Stat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			return true
		}
	}
	return false
}

func openData(ctx context.Context, dir string) (_ *data, err error) {
	backend, err := sqlitestore.Open(dir, keyFile)
	if err != nil {
		return nil, err
	}
	d := &data{Store: store.New(backend)}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
		}
	}()
	// The key is made before anything is stored. So where something is stored, a missing
	// key was lost, and another one in its place would open nothing.
	patient := d.Within(commandWithin)
	view, err := patient.Read(ctx, store.Query{Catalog: true})
	if err != nil {
		return nil, err
	}
	check, err := patient.KeyCheck(ctx)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, keyFile)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) && view.Catalog.Revision+check.Revision > 0 {
		return nil, fmt.Errorf("the key that opens the stored credentials is missing: put %s back, or begin anew in another directory with --data", path)
	}
	key, err := seal.LoadOrCreate(path)
	if err != nil {
		return nil, err
	}
	box, err := seal.New(key)
	if err != nil {
		return nil, fmt.Errorf("use the data key: %w", err)
	}
	if err := (vault.Vault{Store: patient, Box: box}).CheckKey(ctx, path); err != nil {
		return nil, err
	}
	d.box = func(context.Context) (*seal.Box, error) { return box, nil }
	d.presence = presence.In(filepath.Join(dir, presenceDir))
	return d, nil
}

// dataDir is where --data points, or the user's own place for programs' data.
func (c *cli) dataDir() (string, error) {
	if c.dir != "" {
		return c.dir, nil
	}
	if dir, ok := c.LookupEnv("XDG_DATA_HOME"); ok && filepath.IsAbs(dir) {
		return filepath.Join(dir, "holdfast"), nil
	}
	home, ok := c.LookupEnv("HOME")
	if !ok || home == "" {
		return "", errors.New("where your data belongs is not known, because HOME is not set; name a directory with --data")
	}
	if runtime.GOOS == "darwin" {
		return filepath.Join(home, "Library", "Application Support", "holdfast"), nil
	}
	return filepath.Join(home, ".local", "share", "holdfast"), nil
}

// catalog reads what is configured.
func (d *data) catalog(ctx context.Context) (catalog.Catalog, error) {
	view, err := d.Read(ctx, store.Query{Catalog: true})
	if err != nil {
		return catalog.Catalog{}, err
	}
	return *view.Catalog.Catalog, nil
}

// account finds an account by name, with what is known of it.
func (d *data) account(ctx context.Context, name string) (account.Account, store.StateRecord, error) {
	c, err := d.catalog(ctx)
	if err != nil {
		return account.Account{}, store.StateRecord{}, err
	}
	a, err := c.Named(name)
	if err != nil {
		return account.Account{}, store.StateRecord{}, err
	}
	view, err := d.Read(ctx, store.Query{States: []account.ID{a.ID}})
	return a, view.States[a.ID], err
}

// with opens the data, runs do, and closes it.
func (c *cli) with(ctx context.Context, do func(*data) error) (err error) {
	d, closing, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closing()) }()
	d.Store = d.Within(commandWithin)
	err = do(d)
	if d.changed && err == nil {
		d.Note(event.Event{At: c.Now(), Kind: event.Command, What: c.invoked})
	}
	if failed := d.WriteEvents(context.WithoutCancel(ctx), c.Now()); failed != nil {
		fmt.Fprintln(c.Stderr, "holdfast: what was done is not among the events, which could not be written:", oneLine(failed.Error()))
	}
	if err != nil {
		return err
	}
	c.hearSilence(ctx, d)
	return nil
}

// hearSilence has a poller announced that has never made a round. What it cannot do is told
// and fails no command: the command itself has done its work.
func (c *cli) hearSilence(ctx context.Context, d *data) {
	if d.hearSilence == nil {
		return
	}
	p, err := d.Poll(ctx)
	if err != nil || !p.RoundAt.IsZero() {
		return // whoever asks for the poller's rounds hears of the store
	}
	heard, err := d.hearSilence(ctx, c.Now())
	switch {
	case err != nil:
		fmt.Fprintln(c.Stderr, "holdfast: the poller has made no round yet, and whether its alarm is on is not known:", err)
	case heard:
		fmt.Fprintln(c.Stderr, "holdfast: the poller has made no round since the stack was deployed: look at the log of its function Poller, and at its schedule. Its alarm is on now.")
	}
}

// change makes one change of the catalog.
func (d *data) change(ctx context.Context, edit func(catalog.Catalog) (catalog.Catalog, error)) (store.CatalogRecord, error) {
	tried := false
	changed, err := d.ChangeCatalog(ctx, func(old catalog.Catalog) (catalog.Catalog, error) {
		tried = true
		return edit(old)
	})
	d.changed = d.changed || err == nil
	if tried && errors.Is(err, store.ErrUnavailable) {
		err = fmt.Errorf("whether the change was made is not known; look with `holdfast account list`, `holdfast key list` or `holdfast settings` before you try again: %w", err)
	}
	return changed, err
}

// change makes one change of the catalog and nothing else.
func (c *cli) change(ctx context.Context, edit func(catalog.Catalog) (catalog.Catalog, error)) error {
	return c.with(ctx, func(d *data) error {
		_, err := d.change(ctx, edit)
		return err
	})
}

// newID makes an id that was never used.
func (c *cli) newID() (string, error) {
	var bits [12]byte
	if _, err := io.ReadFull(c.Random, bits[:]); err != nil {
		return "", fmt.Errorf("draw an id: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(bits[:]), nil
}
