// Package command is the operator's side: the command line that configures accounts,
// client keys, policies and settings, that shows how the gateway stands, and that serves.
// Serving is the gateway and the poller in one process; a command that ends makes sure that
// a login which it renewed is saved.
//
// # What it promises
//
// Commands never prompt. Listings go to standard output, as a table or, with --json, as
// JSON with snake_case names and RFC 3339 times in UTC; so does a new client key, alone.
// An error is one line on standard error that says what to do. The exit status is 0 for
// success, 1 for an action that failed, 2 for wrong usage; what failed has changed
// nothing, unless the line says that it did.
//
// A secret comes from an environment variable, from standard input or from a client's
// own file, never as an argument, and is never printed after it was made. Changes are one
// conditional write each, so that a running server sees them whole, within two seconds.
//
// # Where the data is
//
// In a directory of this machine (--data), or in a DynamoDB table (--table), which is
// opened by whoever wires the program: this package knows nothing of AWS. Of a table only
// those commands that seal or open something need the key service. Commands do the same on
// both.
//
// # What it never does
//
// It decides nothing about names, ranges and orders (package catalog), nor about who is
// picked (package pick). Of providers it asks how much is used, and renews logins, by the
// packages for that; it never calls a model.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/hidden"
	"holdfast/internal/provider"
)

// Options are the program's surroundings. All are required, but OpenTable only where a
// table is named.
type Options struct {
	Build Build
	// Program is how the program was started, such as bin/holdfast, for hints that can be
	// pasted; empty stands for holdfast.
	Program string
	// Providers are those that accounts can be added for.
	Providers map[account.Provider]provider.Provider
	Stdin     io.Reader
	Stdout    io.Writer
	Stderr    io.Writer
	// LookupEnv reads the environment, as os.LookupEnv does.
	LookupEnv func(string) (string, bool)
	// Environ is the whole environment, as os.Environ has it.
	Environ func() []string
	// OpenTable opens a DynamoDB table by its name. Its errors and the table's are
	// sentences for the owner.
	OpenTable func(context.Context, string) (Table, error)
	Now       func() time.Time
	// Random gives unguessable bytes.
	Random io.Reader
}

// Exit statuses.
const (
	succeeded  = 0
	failed     = 1
	wrongUsage = 2
)

// Run runs the command line without the program's name and returns the exit status. When
// ctx ends, serving and watching end.
func Run(ctx context.Context, args []string, o Options) int {
	c := &cli{Options: o}
	root := c.root()
	root.SetArgs(valuesLast(args))
	root.SetIn(o.Stdin)
	root.SetOut(o.Stdout)
	root.SetErr(o.Stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return succeeded
	}
	text := oneLine(err.Error())
	var usage usageError
	var invalid catalog.Invalid
	if errors.As(err, &invalid) {
		text = c.asTyped(text)
	}
	if errors.As(err, &usage) || errors.As(err, &invalid) {
		fmt.Fprintln(o.Stderr, "holdfast: "+hidden.Clean(text))
		return wrongUsage
	}
	fmt.Fprintln(o.Stderr, "holdfast: "+hidden.Clean(c.asTyped(text)))
	return failed
}

var negative = regexp.MustCompile(`^-[0-9.]`)

// valuesLast puts a negative number behind "--" in `settings set`: it is a value, to be
// refused with the range that is allowed, and no flag.
func valuesLast(args []string) []string {
	i := slices.Index(args, "settings")
	if i < 0 || i+1 >= len(args) || args[i+1] != "set" || slices.Contains(args, "--") {
		return args
	}
	v := slices.IndexFunc(args, negative.MatchString)
	if v < i {
		return args
	}
	return append(slices.Delete(slices.Clone(args), v, v+1), "--", args[v])
}

// cli is one run.
type cli struct {
	Options
	dir   string // --data; empty if not given
	table string // --table; empty if not given
	// makes: the command makes something, and a data directory for it where none exists.
	makes bool
	// invoked is the command as it was typed, without its flags and the program's name.
	invoked string
}

// usageError is wrong usage, by its form alone.
type usageError string

func (e usageError) Error() string { return string(e) }

// oneLine is the one door by which errors leave: they quote what was typed, and people
// do type secrets.
func oneLine(text string) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
	return catalog.HideSecrets(text)
}

func (c *cli) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "holdfast",
		Short: "One address for all your agents, spread over your own LLM accounts",
		Long: "holdfast spreads your agents' conversations over your own accounts, keeps each conversation on the account\n" +
			"that holds its prompt cache, and says early when accounts run out.",
		Example: "  export ANTHROPIC_API_KEY=…\n" +
			"  holdfast account add work --provider anthropic --key-env ANTHROPIC_API_KEY\n" +
			"  holdfast account add chatgpt --provider openai --import ~/.codex/auth.json\n" +
			"  holdfast key create laptop\n" +
			"  holdfast serve",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE:          group,
	}
	root.PersistentFlags().StringVar(&c.dir, "data", "", "directory of accounts, keys and state (default: the user's data directory)")
	root.PersistentFlags().StringVar(&c.table, "table", "", "DynamoDB table of accounts, keys and state, instead of a directory; AWS is found as the AWS CLI finds it")
	root.PersistentPreRunE = func(cmd *cobra.Command, args []string) error {
		_, path, _ := strings.Cut(cmd.CommandPath(), " ")
		c.invoked = catalog.HideSecrets(strings.Join(append([]string{path}, args...), " "))
		return c.checkPlace(cmd)
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return flagError(cmd, err) })
	root.Version = c.Build.String()
	root.SetVersionTemplate("{{.Version}}\n")
	root.AddCommand(c.serveCommand(), c.accountCommand(), c.policyCommand(), c.keyCommand(), c.settingsCommand(),
		c.statusCommand(), c.forecastCommand(), c.usageCommand(), c.eventsCommand(), c.switchesCommand(), c.pollCommand(), c.pickCommand(), c.functionURLCommand(), c.versionCommand(),
		notYet("explain", "past choices are in the log only; `holdfast pick` explains the one it would make now"))
	root.SetHelpCommand(helpCommand())
	// A command that only holds others is no line of its own in the usage.
	root.SetUsageTemplate(strings.Replace(root.UsageTemplate(), "{{if .Runnable}}", "{{if and .Runnable (not .HasAvailableSubCommands)}}", 1))
	return root
}

func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "Explain a command", Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return usageError(fmt.Sprintf("there is no command `holdfast %s`; `holdfast help` lists them", strings.Join(args, " ")))
			}
			return about.Help()
		},
	}
}

// notYet is a command that will be, and says in the meantime what there is instead.
func notYet(name, instead string) *cobra.Command {
	return &cobra.Command{
		Use: name, Hidden: true, DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return usageError(fmt.Sprintf("`%s` is not there yet: %s", cmd.CommandPath(), instead))
		},
	}
}

// group answers for a command that only holds others.
func group(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		if cmd.HasParent() {
			var names []string
			for _, sub := range cmd.Commands() {
				if !sub.Hidden {
					names = append(names, sub.Name())
				}
			}
			return usageError(fmt.Sprintf("say what to do: `%s` is followed by one of %s", cmd.CommandPath(), strings.Join(names, ", ")))
		}
		return cmd.Help()
	}
	cmd.SuggestionsMinimumDistance = 2
	text := fmt.Sprintf("there is no command `%s %s`", cmd.CommandPath(), args[0])
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return usageError(text + "; did you mean " + strings.Join(near, " or ") + "?")
	}
	return usageError(text + "; see `" + cmd.CommandPath() + " --help`")
}

const secretAdvice = "a secret is never given as an argument, where the shell's history and other users see it: " +
	"use --key-env VARIABLE or --key-stdin"

// secretFlags are names under which people try to pass a secret.
var secretFlags = regexp.MustCompile(`unknown flag: --(api-?)?(key|token|secret|password)$`)

func flagError(cmd *cobra.Command, err error) error {
	if secretFlags.MatchString(err.Error()) || catalog.LooksSecret(err.Error()) {
		return usageError(secretAdvice)
	}
	return usageError(err.Error() + "; see `" + cmd.CommandPath() + " --help`")
}

// exactly checks the number of arguments and says what they are: "NAME", "KEY VALUE".
// A last word that ends in … may be repeated.
func exactly(words string) cobra.PositionalArgs {
	names := strings.Fields(words)
	many := len(names) > 0 && strings.HasSuffix(names[len(names)-1], "…")
	return func(cmd *cobra.Command, args []string) error {
		for i, arg := range args {
			if catalog.LooksSecret(arg) && (i > 0 || len(args) > len(names)) {
				return usageError(secretAdvice)
			}
		}
		switch {
		case len(args) < len(names):
			return usageError(fmt.Sprintf("`%s` needs %s; see `%[1]s --help`", cmd.CommandPath(), strings.Join(names[len(args):], " and ")))
		case len(args) > len(names) && !many && len(names) == 0:
			return usageError(fmt.Sprintf("`%s` takes no argument; see `%[1]s --help`", cmd.CommandPath()))
		case len(args) > len(names) && !many:
			return usageError(fmt.Sprintf("`%s` takes %s and nothing more; see `%[1]s --help`", cmd.CommandPath(), strings.Join(names, " and ")))
		}
		return nil
	}
}

// providerNames are the providers that there are, for a sentence: "anthropic, openai or xai".
func (c *cli) providerNames() string {
	var names []string
	for _, p := range account.Providers {
		if _, ok := c.Providers[p]; ok {
			names = append(names, string(p))
		}
	}
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// providerOf reads a provider's name from the command line.
func (c *cli) providerOf(name string) (account.Provider, error) {
	p := account.Provider(strings.ToLower(name))
	if _, ok := c.Providers[p]; ok {
		return p, nil
	}
	return "", usageError(fmt.Sprintf("there is no provider %q; it is one of %s", name, c.providerNames()))
}
