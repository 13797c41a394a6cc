package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast/internal/aws/functionurl"
	"holdfast/internal/core/catalog"
)

const (
	defaultFunctionAddress = "127.0.0.1:9000"
	// longestFunction is the longest timeout that Lambda allows.
	longestFunction = 15 * time.Minute
)

// function is what stands behind a local Function URL.
type function struct {
	address          string
	binary, endpoint string
	name             string
	env              []string
	timeout          time.Duration
}

func (c *cli) functionURLCommand() *cobra.Command {
	var f function
	cmd := &cobra.Command{
		Use:   "function-url (--binary FILE | --endpoint URL)",
		Short: "Serve a local Function URL in front of the Lambda function, until interrupted",
		Long: "Serve a local Function URL in front of the Lambda function, until interrupted: requests become events, and the\n" +
			"function's answers are streamed. With --binary its program runs here, one process for each request at a time;\n" +
			"with --endpoint it is invoked elsewhere, as by `sam local start-lambda`, which does not stream.\n\n" +
			"The program gets the AWS_* and HOLDFAST_* variables of this environment. With --table it also gets whatever it\n" +
			"needs to open that table as you: region, credentials and KMS key. Its output and log lines go to standard error.",
		Example: "  make function\n" +
			"  holdfast function-url --binary bin/gateway --table holdfast",
		Args: exactly(""),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.address, "addr", defaultFunctionAddress, "where to listen")
	flags.StringVar(&f.binary, "binary", "", "the function's program")
	flags.StringVar(&f.endpoint, "endpoint", "", "where the function can be invoked, such as http://127.0.0.1:3001")
	flags.StringVar(&f.name, "function", "", "the function's name (default: function)")
	flags.StringArrayVar(&f.env, "env", nil, "a variable for the program, NAME=VALUE, or NAME to pass on your own; may be repeated")
	flags.DurationVar(&f.timeout, "timeout", longestFunction, "the function's timeout, from 1s to 15m")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := c.checkFunction(cmd, f); err != nil {
			return err
		}
		return c.serveFunction(cmd.Context(), f)
	}
	return cmd
}

// checkFunction finds wrong usage before anything is opened.
func (c *cli) checkFunction(cmd *cobra.Command, f function) error {
	switch {
	case f.binary == "" && f.endpoint == "":
		return usageError("say what answers: --binary FILE, the function's program, or --endpoint URL, where it can be invoked")
	case f.binary != "" && f.endpoint != "":
		return usageError("give --binary or --endpoint, not both: the function's program, or where it can be invoked")
	case c.dir != "":
		return usageError("--data does not go with function-url: the function keeps its data in a DynamoDB table, named with --table")
	case f.endpoint != "" && (c.table != "" || cmd.Flags().Changed("env") || cmd.Flags().Changed("timeout")):
		return usageError("--table, --env and --timeout go with --binary: a function behind an endpoint has those that it was started with")
	case f.timeout < time.Second || f.timeout > longestFunction:
		return usageError("--timeout is from 1s to 15m, which is the most that Lambda allows")
	}
	for _, v := range f.env {
		if name, value, _ := strings.Cut(v, "="); !variableName.MatchString(name) {
			return usageError("--env takes NAME=VALUE, or NAME alone for a variable of your own")
		} else if catalog.LooksSecret(value) {
			return usageError("a secret is never given as an argument, where the shell's history and other users see it: export it, and pass it on with --env " + name)
		}
	}
	return nil
}

func (c *cli) serveFunction(ctx context.Context, f function) (err error) {
	log, err := c.logger()
	if err != nil {
		return err
	}
	listener, err := listen(ctx, f.address)
	if err != nil {
		return err
	}
	defer listener.Close() // for the ways out before serving; closing twice does no harm
	front, err := c.front(ctx, f, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, front.Close()) }()
	return c.serveOn(ctx, listener, front, log)
}

// front makes the Function URL.
func (c *cli) front(ctx context.Context, f function, log *slog.Logger) (*functionurl.Front, error) {
	o := functionurl.Options{
		Endpoint: f.endpoint, Function: f.name, Timeout: f.timeout, Output: c.Stderr, Log: log,
	}
	if f.binary != "" {
		if err := c.checkProgram(f.binary); err != nil {
			return nil, err
		}
		o.Binary = f.binary
		if !strings.ContainsRune(f.binary, os.PathSeparator) {
			o.Binary = "." + string(os.PathSeparator) + f.binary // a file, and not a command that is found elsewhere
		}
		var err error
		if o.Env, err = c.functionEnv(ctx, f.env); err != nil {
			return nil, err
		}
	}
	return functionurl.New(o)
}

// Programs by how Linux knows them: an ELF header's first bytes, and its machine.
var (
	elf      = []byte("\x7fELF")
	machines = map[byte]string{0x3e: "amd64", 0xb7: "arm64"}
)

// checkProgram says what is wrong with a program, where that can be seen without running
// it: once it runs, it is by requests, whose clients hear no more than 502.
func (c *cli) checkProgram(name string) error {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no file %s; build the function first (make function), or name its program with --binary", name)
	case err != nil:
		return fmt.Errorf("look at the function's program: %w", err)
	case info.IsDir():
		return fmt.Errorf("%s is a folder; name the function's program in it, such as %s", name, strings.TrimSuffix(name, "/")+"/bootstrap")
	case info.Mode()&0o111 == 0:
		return fmt.Errorf("%s is not executable; if it is the function's program: chmod +x %[1]s", name)
	}
	file, err := os.Open(name)
	if err != nil {
		return nil // it may be run and not read
	}
	defer file.Close()
	var head [20]byte
	if _, err := io.ReadFull(file, head[:]); err != nil || !bytes.HasPrefix(head[:], elf) {
		return nil // a script, or not Linux's
	}
	if built, known := machines[head[18]]; known && (built != runtime.GOARCH || runtime.GOOS != "linux") {
		c.say("%s is built for linux/%s and this machine is %s/%s: unless it can run that, every request will be answered 502. Build it with GOOS=%[3]s GOARCH=%[4]s.",
			name, built, runtime.GOOS, runtime.GOARCH)
	}
	return nil
}

// passedOn are variables that a program needs on this machine, beside AWS_* and
// HOLDFAST_*: where programs and temporary files are, and how the network is reached.
var passedOn = regexp.MustCompile(`^(AWS_.*|HOLDFAST_.*|PATH|TMPDIR|SSL_CERT_FILE|SSL_CERT_DIR|(HTTP|HTTPS|NO)_PROXY|(http|https|no)_proxy)=`)

// functionEnv is the environment of the function's program. The last one of a name counts.
func (c *cli) functionEnv(ctx context.Context, more []string) ([]string, error) {
	env := slices.DeleteFunc(slices.Clone(c.Environ()), func(v string) bool { return !passedOn.MatchString(v) })
	for i, v := range more {
		if name, _, whole := strings.Cut(v, "="); !whole {
			value, ok := c.LookupEnv(name)
			if !ok {
				return nil, fmt.Errorf("the environment variable %s is not set; export it first, or give it a value: --env %[1]s=VALUE", name)
			}
			more[i] = name + "=" + value
		}
	}
	if c.table != "" {
		t, err := c.namedTable(ctx)
		if err != nil {
			return nil, err
		}
		opened, err := t.Environment(ctx)
		if err := errors.Join(err, t.Close()); err != nil {
			return nil, err
		}
		env = append(env, opened...)
	}
	env = append(env, more...)
	c.sayOfMissing(env)
	return env, nil
}

// sayOfMissing says which variables the gateway's function will miss. The program may be
// another's, so that is no error.
func (c *cli) sayOfMissing(env []string) {
	var missing []string
	for _, name := range []string{"HOLDFAST_TABLE", "HOLDFAST_KMS_KEY_ID", "AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} {
		if !slices.ContainsFunc(env, func(v string) bool { return strings.HasPrefix(v, name+"=") && v != name+"=" }) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		c.say("The gateway's function needs %s in its environment, which --table NAME would see to.", strings.Join(missing, ", "))
	}
}
