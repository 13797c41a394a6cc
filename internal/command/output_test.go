package command_test

import (
	"bytes"
	"strings"
	"testing"

	"holdfast/internal/command"
	"holdfast/internal/core/account"
)

// What is advised works when it is pasted: it begins as the program was started, and names
// the data that the program was told of.
func TestAdviceCanBePasted(t *testing.T) {
	b := newBench(t)
	b.add("work")
	b.fold("work", func(s account.State) account.State {
		return s.Reject(account.Rejection{Kind: account.BadCredential, At: t0, Rule: "unauthorized", Generation: 1}, account.Rules{})
	})
	b.program = "bin/holdfast"
	advised := "bin/holdfast --data " + b.dir + " account "
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"account", "show", "work"}, advised + "login work --key-env VARIABLE"},
		{[]string{"account", "check", "work", "--no-look"}, advised + "login work --key-env VARIABLE"},
		{[]string{"account", "add", "work", "--provider", "anthropic", "--key-env", "KEY"}, advised + "login work"},
		{[]string{"account", "drain", "nobody"}, advised + "list"},
		{[]string{"account", "drain", "No Body"}, advised + "list"},
		{[]string{"key", "revoke", "No Body"}, "bin/holdfast --data " + b.dir + " key list"},
		{[]string{"settings", "set", "nothing", "1"}, "bin/holdfast --data " + b.dir + " settings"},
		{[]string{"pick", "--provider", "anthropic"}, "bin/holdfast --data " + b.dir + " pick --provider anthropic --model MODEL"},
		{[]string{"pick", "--provider", "xai", "--model", "grok-4.6"}, advised + "add NAME --provider xai --key-env VARIABLE"},
		{[]string{"policy", "anthropic", "--threshold", "0.7"}, "bin/holdfast --data " + b.dir + " policy anthropic order --threshold 0.8"},
	} {
		var stdout, stderr bytes.Buffer
		command.Run(t.Context(), append(b.place(), tt.args...), b.options(strings.NewReader(""), &stdout, &stderr))
		if text := stdout.String() + stderr.String(); !strings.Contains(text, tt.want) {
			t.Errorf("%v lacks %q:\n%s", tt.args, tt.want, text)
		}
	}
}
