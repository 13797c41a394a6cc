package command

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast/internal/core/account"
	"holdfast/internal/core/credential"
	"holdfast/internal/provider/credentialfile"
	"holdfast/internal/status"
	"holdfast/internal/store/seal"
)

// source is where a credential comes from: exactly one of the three.
type source struct {
	keyEnv     string
	keyStdin   bool
	importFile string
	team       bool
	noCheck    bool
	plan       string
}

func (s *source) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.keyEnv, "key-env", "", "take an API key from this environment variable")
	f.BoolVar(&s.keyStdin, "key-stdin", false, "take an API key from standard input")
	f.StringVar(&s.importFile, "import", "", "take a subscription login from an official client's credential file")
	f.BoolVar(&s.team, "team", false, "with --import: the login is meant to be a team's or an organization's seat")
	f.StringVar(&s.plan, "plan", "", "what to call the plan (default: what an imported login says)")
	f.BoolVar(&s.noCheck, "no-check", false, "with --import: contact nobody, and leave the login's proof to its first use")
}

// obtained is a credential on its way into the store.
type obtained struct {
	credential.Credential
	kind account.Kind
	plan string
	// login is set for an imported login; unchecked: its proof is left to its first use.
	login     *credentialfile.Login
	unchecked bool
	// anywhere: it is no secret, and may be shown to whatever host its account has.
	anywhere bool
}

// secretHash recognizes the credential when it is given again: a login by its refresh
// token, which outlives the access token; a key together with its scope, since one key may
// be good for several, each with limits of its own.
func (o obtained) secretHash(box *seal.Box) string {
	secret := o.Bearer().Reveal()
	switch {
	case !o.Refresh.Empty():
		secret = o.Refresh.Reveal()
	case o.Scope != credential.Scope{}: // no key holds a space
		secret = strings.Join([]string{secret, o.Scope.Organization, o.Scope.Project, o.Scope.Workspace}, " ")
	}
	return box.KeyedHash("account-secret", []byte(secret))
}

// kind is what the credential is going to be.
func (s *source) kind() account.Kind {
	if s.importFile != "" {
		return account.Subscription
	}
	return account.Key
}

// given counts the places that were named.
func (s *source) given(cmd *cobra.Command) (n int) {
	for _, name := range []string{"key-env", "key-stdin", "import"} {
		if cmd.Flags().Changed(name) {
			n++
		}
	}
	return n
}

// check finds wrong usage before anything is opened.
func (s *source) check(cmd *cobra.Command) error {
	given := s.given(cmd)
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
		return "", fmt.Errorf("read the key from standard input: %w; give it through a pipe, or in an environment variable with --key-env", err)
	}
	return headerSafe(string(text), "standard input")
}

// headerSafe takes a key that a header can carry, whatever it looks like otherwise.
func headerSafe(text, from string) (string, error) {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return "", fmt.Errorf("%s is empty; put the key into it, and run this again", from)
	case len(text) > longestKey || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", fmt.Errorf("%s does not hold one key: a key is one word of printable characters; put the key alone into it, and run this again", from)
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
		return obtained{}, fmt.Errorf("import %s: this login is not a personal one but a team's or an organization's%s; say --team if that is what you mean", s.importFile, ofPlan(login.Plan))
	}
	if login.Credential.Expired(c.Now()) && login.Credential.Refresh.Empty() {
		return obtained{}, fmt.Errorf("import %s: the login expired at %s and the file holds no refresh token; log in with %s again, then import its file",
			s.importFile, login.Credential.ExpiresAt.Format(time.RFC3339), login.Client)
	}
	plan := s.plan
	if plan == "" {
		plan = login.Plan
	}
	return obtained{Credential: login.Credential, kind: account.Subscription, plan: plan, login: &login, unchecked: s.noCheck}, nil
}

// ofPlan names a plan, where it is known.
func ofPlan(plan string) string {
	if plan == "" {
		return ""
	}
	return " (plan " + status.Plain(plan) + ")"
}

// largestFile is more than any credential file has; package credentialfile has the rule.
const largestFile = 2 << 20

func readFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no file %s; Claude Code keeps its login in ~/.claude/.credentials.json (on macOS in the keychain, not in a file), Codex in ~/.codex/auth.json, the Grok CLI in ~/.grok/auth.json", name)
	}
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil, fmt.Errorf("%s is a pipe or a device and not a file; save the login to a file that only you can read, and import that", name) // a pipe may never end
	}
	if err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a folder; name the credential file in it, such as %s", name, filepath.Join(name, "auth.json"))
	}
	var f *os.File
	if err == nil {
		f, err = os.Open(name)
	}
	if err != nil {
		return nil, unreadable(err)
	}
	defer f.Close()
	file, err := io.ReadAll(io.LimitReader(f, largestFile))
	if err != nil {
		return nil, unreadable(err)
	}
	return file, nil
}

// unreadable says what to do about a credential file that cannot be read.
func unreadable(err error) error {
	return fmt.Errorf("read the credential file: %w; copy it to where you can read it, and import the copy", err)
}
