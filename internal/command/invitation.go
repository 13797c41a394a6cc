package command

import (
	"fmt"
	"strings"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
)

// ExampleModels are the models of examples: ones that a newcomer's key can use today.
var ExampleModels = map[account.Provider]string{
	account.Anthropic: "claude-sonnet-5",
	account.OpenAI:    "gpt-5.5",
	account.XAI:       "grok-4.6",
}

// invitation is what to paste into another terminal, for the providers that there are
// accounts of. It changes a client's base URL and key, and nothing else.
func invitation(all catalog.Catalog, url, key string) string {
	var b strings.Builder
	b.WriteString("\nTry it, from another terminal:\n\n")
	for _, p := range account.Providers {
		of := all.Of(p)
		if len(of) == 0 {
			continue
		}
		for _, a := range of {
			if a.Kind == account.Key { // a plan answers its own provider's clients only
				fmt.Fprintf(&b, curls[p], url, key, ExampleModels[p])
				break
			}
		}
		fmt.Fprintf(&b, clients[p], url, key, ExampleModels[p])
	}
	fmt.Fprintf(&b, "  curl -H \"x-api-key: %s\" %s/_holdfast/status.json\n\n", key, url)
	fmt.Fprintf(&b, "  holdfast status\n\nand to end this client key:\n\n  holdfast key revoke %s\n\n", tryKey)
	return b.String()
}

// Calls and clients of each provider: %[1]s is the gateway, %[2]s the client key, %[3]s a
// model.
var (
	curls = map[account.Provider]string{
		account.Anthropic: `  curl %[1]s/v1/messages \
    -H "x-api-key: %[2]s" \
    -H "anthropic-version: 2023-06-01" -H "content-type: application/json" \
    -d '{"model":"%[3]s","max_tokens":100,"messages":[{"role":"user","content":"Hello"}]}'

`,
		account.OpenAI: responsesCurl,
		account.XAI:    responsesCurl,
	}
	clients = map[account.Provider]string{
		account.Anthropic: "  ANTHROPIC_BASE_URL=%[1]s ANTHROPIC_AUTH_TOKEN=%[2]s claude\n\n",
		account.OpenAI: `  HOLDFAST_KEY=%[2]s codex

    with this in ~/.codex/config.toml:

model_provider = "holdfast"
[model_providers.holdfast]
name = "holdfast"
base_url = "%[1]s/v1"
env_key = "HOLDFAST_KEY"
wire_api = "responses"

`,
		account.XAI: `  HOLDFAST_KEY=%[2]s grok

    with this in ~/.grok/config.toml:

[models]
default = "%[3]s"
[model."%[3]s"]
model = "%[3]s"
name = "Grok via holdfast"
base_url = "%[1]s/v1"
api_backend = "responses"
env_key = "HOLDFAST_KEY"
context_window = 500000

`,
	}
)

const responsesCurl = `  curl %[1]s/v1/responses \
    -H "authorization: Bearer %[2]s" -H "content-type: application/json" \
    -d '{"model":"%[3]s","input":"Hello"}'

`
