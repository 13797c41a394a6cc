package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast/internal/account"
	"holdfast/internal/catalog"
	"holdfast/internal/credential"
	"holdfast/internal/credentialfile"
	"holdfast/internal/seal"
	"holdfast/internal/store"
	"holdfast/internal/vault"
)

// source is where a credential comes from: exactly one of the three.
type source struct {
	keyEnv     string
	keyStdin   bool
	importFile string
	team       bool
	plan       string
}

func (s *source) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.keyEnv, "key-env", "", "take an API key from this environment variable")
	f.BoolVar(&s.keyStdin, "key-stdin", false, "take an API key from standard input")
	f.StringVar(&s.importFile, "import", "", "take a subscription login from an official client's credential file")
	f.BoolVar(&s.team, "team", false, "with --import: the login is meant to be a team's or an organization's seat")
	f.StringVar(&s.plan, "plan", "", "what to call the plan (default: what an imported login says)")
	f.Bool("no-check", false, "with --import: leave the login's proof to its first use, as is always done for now")
	_ = f.MarkHidden("no-check") // it exists, so that scripts written for it go on working
}

// obtained is a credential on its way into the store.
type obtained struct {
	credential.Credential
	kind account.Kind
	plan string
	// login is set for an imported login.
	login *credentialfile.Login
}

// secretHash recognizes the credential when it is given again: a login by its refresh
// token, which outlives the access token.
func (o obtained) secretHash(box *seal.Box) string {
	secret := o.Bearer()
	if !o.Refresh.Empty() {
		secret = o.Refresh
	}
	return box.KeyedHash("account-secret", []byte(secret.Reveal()))
}

// check finds wrong usage before anything is opened.
func (s *source) check(cmd *cobra.Command) error {
	given := 0
	for _, name := range []string{"key-env", "key-stdin", "import"} {
		if cmd.Flags().Changed(name) {
			given++
		}
	}
	switch {
	case given == 0:
		return usageError("say where the credential is: --key-env VARIABLE, --key-stdin or --import FILE")
	case given > 1:
		return usageError("give one of --key-env, --key-stdin and --import, not several")
	case s.importFile == "" && (s.team || cmd.Flags().Changed("no-check")):
		return usageError("--team and --no-check go with --import")
	case len(s.plan) > 64 || strings.ContainsFunc(s.plan, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return usageError("a plan's name has at most 64 characters on one line")
	}
	return nil
}

// obtain reads the credential.
func (c *cli) obtain(s *source) (obtained, error) {
	if s.importFile != "" {
		return c.importLogin(s)
	}
	var text string
	var err error
	if s.keyStdin {
		text, err = c.keyFromStdin()
	} else {
		text, err = c.keyFromEnv(s.keyEnv)
	}
	if err != nil {
		return obtained{}, err
	}
	return obtained{Credential: credential.Credential{Key: credential.NewSecret(text)}, kind: account.Key, plan: s.plan}, nil
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (c *cli) keyFromEnv(name string) (string, error) {
	if !variableName.MatchString(name) {
		return "", usageError("--key-env takes the name of an environment variable, such as ANTHROPIC_API_KEY, not the key")
	}
	text, ok := c.LookupEnv(name)
	if !ok {
		return "", fmt.Errorf("the environment variable %s is not set; export it first, or give the key with --key-stdin", name)
	}
	return headerSafe(text, "the environment variable "+name)
}

// longestKey bounds what is read as a key.
const longestKey = 16 << 10

func (c *cli) keyFromStdin() (string, error) {
	text, err := io.ReadAll(io.LimitReader(c.Stdin, longestKey+1))
	if err != nil {
		return "", fmt.Errorf("read the key from standard input: %w", err)
	}
	return headerSafe(string(text), "standard input")
}

// headerSafe takes a key that a header can carry, whatever it looks like otherwise.
func headerSafe(text, from string) (string, error) {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return "", fmt.Errorf("%s is empty; it should hold the key", from)
	case len(text) > longestKey || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", fmt.Errorf("%s does not hold one key: a key is one word of printable characters", from)
	}
	return text, nil
}

func (c *cli) importLogin(s *source) (obtained, error) {
	file, err := readFile(s.importFile)
	if err != nil {
		return obtained{}, err
	}
	login, err := credentialfile.Read(file)
	if err != nil {
		return obtained{}, fmt.Errorf("import %s: %w", s.importFile, err)
	}
	if login.Team && !s.team {
		return obtained{}, fmt.Errorf("import %s: this is a seat of a %s plan; say --team if that is what you mean", s.importFile, login.Plan)
	}
	if login.Credential.Expired(c.Now()) {
		return obtained{}, fmt.Errorf("import %s: the login expired at %s and cannot be renewed here yet; use %s once, which renews it, then import again",
			s.importFile, login.Credential.ExpiresAt.Format(time.RFC3339), login.Client)
	}
	plan := s.plan
	if plan == "" {
		plan = login.Plan
	}
	return obtained{Credential: login.Credential, kind: account.Subscription, plan: plan, login: &login}, nil
}

// largestFile is more than any credential file has; package credentialfile has the rule.
const largestFile = 2 << 20

func readFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no file %s; Claude Code keeps its login in ~/.claude/.credentials.json (on macOS in the keychain, not in a file)", name)
	}
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil, fmt.Errorf("%s is a pipe or a device and not a file; save the login to a file that only you can read, and import that", name) // a pipe may never end
	}
	var f *os.File
	if err == nil {
		f, err = os.Open(name)
	}
	if err != nil {
		return nil, fmt.Errorf("read the credential file: %w", err)
	}
	defer f.Close()
	file, err := io.ReadAll(io.LimitReader(f, largestFile))
	if err != nil {
		return nil, fmt.Errorf("read the credential file: %w", err)
	}
	return file, nil
}

func (c *cli) accountAdd() *cobra.Command {
	var from source
	var providerName, baseURL string
	cmd := &cobra.Command{
		Use:   "add NAME --provider P (--key-env VAR | --key-stdin | --import FILE)",
		Short: "Add an account, as the last of its provider's order",
		Long: "Add an account, as the last of its provider's order: an API key from an environment variable or from standard\n" +
			"input, or a subscription login from an official client's credential file. Nobody is contacted.",
		Example: "  holdfast account add work --provider anthropic --key-env ANTHROPIC_API_KEY\n" +
			"  pass show anthropic | holdfast account add home --provider anthropic --key-stdin\n" +
			"  holdfast account add max --provider anthropic --import ~/.claude/.credentials.json",
		Args: exactly("NAME"),
	}
	from.flags(cmd)
	cmd.Flags().StringVar(&providerName, "provider", "", "whose account it is: "+c.providerNames())
	cmd.Flags().StringVar(&baseURL, "base-url", "", "another host in place of the provider's, such as http://127.0.0.1:9000")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := catalog.CheckName(args[0]); err != nil {
			return err
		}
		if providerName == "" {
			return usageError("say whose account it is, with --provider " + c.providerNames())
		}
		p, err := c.providerOf(providerName)
		if err != nil {
			return err
		}
		if err := checkBaseURL(cmd, baseURL); err != nil {
			return err
		}
		if err := from.check(cmd); err != nil {
			return err
		}
		got, err := c.obtain(&from)
		if err != nil {
			return err
		}
		if got.login != nil && got.login.Provider != p {
			return fmt.Errorf("import %s: this is the login of %s, which belongs to %s; say --provider %s", from.importFile, got.login.Client, got.login.Provider, got.login.Provider)
		}
		return c.with(cmd.Context(), func(d *data) error {
			return c.add(cmd.Context(), d, account.Account{Name: args[0], Provider: p, BaseURL: baseURL}, got)
		})
	}
	return cmd
}

// checkBaseURL refuses a base URL that is none, or is this program's own.
func checkBaseURL(cmd *cobra.Command, text string) error {
	if text == "" && cmd.Flags().Changed("base-url") {
		return usageError("--base-url is empty; name a host, or leave it out for the provider's own")
	}
	base, err := catalog.CheckBaseURL(text)
	if err != nil {
		return err
	}
	_, port, _ := net.SplitHostPort(defaultAddress)
	for _, own := range []string{"127.0.0.1", "localhost", "[::1]"} {
		if base == "http://"+own+":"+port {
			return usageError(base + " is where holdfast itself listens: it would ask itself for ever; an account's base URL is another host")
		}
	}
	return nil
}

// add stores a new account. Its credential is written first, under an id that nothing
// names yet, so that no server ever sees the account without it.
func (c *cli) add(ctx context.Context, d *data, a account.Account, got obtained) error {
	id, err := c.newID()
	if err != nil {
		return err
	}
	a.ID, a.Kind, a.Plan, a.AddedAt = account.ID(id), got.kind, got.plan, c.Now().UTC().Truncate(time.Second)
	old, err := d.catalog(ctx)
	if err != nil {
		return err
	}
	box, err := d.box(ctx)
	if err != nil {
		return err
	}
	a.SecretHash = got.secretHash(box)
	if _, err := old.AddAccount(a); err != nil {
		return err
	}
	if got.login != nil && !hadSubscription(old, a.Provider) {
		c.say("%s", credentialfile.Terms(a.Provider)) // before anything is kept
	}
	got.Generation = 1
	v := vault.Vault{Store: d.Store, Box: box}
	if _, err := v.Save(ctx, a.ID, got.Credential, 0); err != nil {
		return err
	}
	next, err := d.change(ctx, func(old catalog.Catalog) (catalog.Catalog, error) { return old.AddAccount(a) })
	if errors.Is(err, store.ErrUnavailable) {
		// It may have been added all the same, and then needs its credential. If it was not,
		// nothing names what stays behind, sealed.
		return err
	}
	if err != nil {
		return errors.Join(err, d.Forget(ctx, a.ID))
	}
	c.say("Account %s is added to %s, as number %d of %d.", a.Name, a.Provider, len(next.Of(a.Provider)), len(next.Of(a.Provider)))
	c.sayOfLogin(a, got)
	return nil
}

// hadSubscription reports whether the notice on terms was shown before.
func hadSubscription(c catalog.Catalog, p account.Provider) bool {
	for _, a := range c.Of(p) {
		if a.Kind == account.Subscription {
			return true
		}
	}
	return false
}

func (c *cli) sayOfLogin(a account.Account, got obtained) {
	if got.login == nil {
		return
	}
	c.say("%s", got.login.TwoRefreshers())
	if !got.ExpiresAt.IsZero() {
		c.say("holdfast does not renew logins yet: this one serves until %s. Then: holdfast account login %s --import FILE", got.ExpiresAt.Format(time.RFC3339), a.Name)
	}
}

func (c *cli) accountLogin() *cobra.Command {
	var from source
	var otherPrincipal bool
	cmd := &cobra.Command{
		Use:   "login NAME (--key-env VAR | --key-stdin | --import FILE)",
		Short: "Give an account a new credential; it keeps its conversations, order and history",
		Args:  exactly("NAME"),
	}
	from.flags(cmd)
	cmd.Flags().BoolVar(&otherPrincipal, "other-principal", false, "the credential is somebody else's: forget what was read of the account")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := from.check(cmd); err != nil {
			return err
		}
		return c.with(cmd.Context(), func(d *data) error {
			a, state, err := d.account(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			got, err := c.obtain(&from)
			if err != nil {
				return err
			}
			return c.login(cmd.Context(), d, a, state, got, otherPrincipal)
		})
	}
	return cmd
}

// otherOwner reports whether two credentials are certainly of different principals. Keys
// tell of none, and neither does Claude Code's file.
func otherOwner(held, next credential.Credential) bool {
	return held.Principal != "" && next.Principal != "" && held.Principal != next.Principal
}

// otherSeat reports whether two plans cannot be the same person's at the same place: one is
// personal, and one an organization's. A plan that the owner named otherwise tells nothing.
func otherSeat(held, next string) bool {
	seats := map[string]string{"free": "own", "pro": "own", "max": "own", "team": "team", "enterprise": "enterprise"}
	first := func(plan string) string { name, _, _ := strings.Cut(plan, " "); return seats[name] }
	return first(held) != "" && first(next) != "" && first(held) != first(next)
}

func (c *cli) login(ctx context.Context, d *data, a account.Account, state store.StateRecord, got obtained, otherPrincipal bool) error {
	if got.kind != a.Kind {
		words := map[account.Kind]string{account.Key: "an API key", account.Subscription: "a subscription login"}
		return fmt.Errorf("account %s is %s and this is %s: add it as an account of its own", a.Name, words[a.Kind], words[got.kind])
	}
	if got.login != nil && got.login.Provider != a.Provider {
		return fmt.Errorf("account %s belongs to %s and this login to %s: add it as an account of its own", a.Name, a.Provider, got.login.Provider)
	}
	box, err := d.box(ctx)
	if err != nil {
		return err
	}
	hash := got.secretHash(box)
	record := func(old catalog.Catalog) (catalog.Catalog, error) { return old.LogIn(a.Name, hash, got.plan) }
	all, err := d.catalog(ctx)
	if err != nil {
		return err
	}
	if _, err := record(all); err != nil {
		return err
	}
	v := vault.Vault{Store: d.Store, Box: box}
	held, revision, err := v.Load(ctx, a.ID)
	if err != nil && revision == 0 {
		return err // the store's; a credential that does not open is what a login mends
	}
	if otherOwner(held, got.Credential) && !otherPrincipal {
		return fmt.Errorf("this credential belongs to somebody else than account %s: add it as an account of its own, or say --other-principal", a.Name)
	}
	if got.login != nil && otherSeat(a.Plan, got.login.Plan) && !otherPrincipal {
		return fmt.Errorf("account %s has a %s plan and this login a %s one, so it is another seat: add it as an account of its own, or say --other-principal", a.Name, a.Plan, got.login.Plan)
	}
	got.Generation = max(held.Generation, state.Generation) + 1
	if _, err := v.Save(ctx, a.ID, got.Credential, revision); err != nil {
		if errors.Is(err, store.ErrConflict) {
			return errors.New("the account's credential was changed by another process just now; look whether that is what you want, and try again")
		}
		return err
	}
	if otherPrincipal {
		if err := d.ForgetState(ctx, a.ID); err != nil {
			return fmt.Errorf("the new credential is saved, but what was read of the account is still there; run this again: %w", err)
		}
		state = store.StateRecord{}
	}
	_, err = d.Fold(ctx, a.ID, state, func(s account.State) (account.State, bool) { return s.LoggedIn(got.Generation), true })
	if err != nil {
		return fmt.Errorf("the new credential is saved, but the account's state is not; run this again: %w", err)
	}
	if _, err := d.change(ctx, record); err != nil {
		return fmt.Errorf("the new credential is saved, but not its plan, nor that it is held: %w", err)
	}
	c.say("Account %s has a new credential.", a.Name)
	c.sayOfLogin(a, got)
	return nil
}
