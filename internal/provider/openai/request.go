package openai

import (
	"net/http"
	"slices"
	"strings"

	"holdfast/internal/core/account"
	"holdfast/internal/provider"
	"holdfast/internal/wire/body"
)

// scopePrefix begins the name of a right that the owner kept from a key when making it.
const scopePrefix = "scope:"

// right names the right to what is below a path, by the first segment below the root:
// scope:responses.
func right(path string) string {
	rest, _ := strings.CutPrefix(path, root+"/")
	first, _, _ := strings.Cut(rest, "/")
	return scopePrefix + first
}

// rightOf is the right that a request needs.
func rightOf(r provider.Request) string {
	for _, f := range r.Features {
		if strings.HasPrefix(f, scopePrefix) {
			return f
		}
	}
	return scopePrefix
}

// tier is the service tier that a client chose, empty for those that all accounts have.
func tier(chosen string) string {
	switch chosen {
	case "auto", "default":
		return ""
	}
	return chosen
}

const (
	root        = "/v1"
	responses   = "/v1/responses"
	compact     = "/v1/responses/compact"
	inputTokens = "/v1/responses/input_tokens"
	chat        = "/v1/chat/completions"
	completions = "/v1/completions"
	models      = "/v1/models"

	// codexRoot is where the backend of ChatGPT plans has what is below /v1 elsewhere.
	codexRoot = "/backend-api/codex"
)

// codexAside are the further paths that Codex asks for below its base URL.
var codexAside = []string{models, "/v1/images/generations", "/v1/images/edits", "/v1/alpha/search", "/v1/memories/trace_summarize"}

// below reports whether a path is top or lies below it.
func below(path, top string) bool {
	rest, ok := strings.CutPrefix(path, top)
	return ok && (rest == "" || rest[0] == '/')
}

// spelled gives a path in the spelling of the API, also where a client used that of the
// backend.
func spelled(path string) string {
	if below(path, codexRoot) {
		return root + path[len(codexRoot):]
	}
	return path
}

// Dialect implements provider.Provider.
func (Provider) Dialect(path string) provider.Dialect { return provider.DialectOf(spelled(path)) }

// Inspect implements provider.Provider.
//
// Bound are all requests of Codex, which always asks for encrypted reasoning, and those
// whose body carries some or names an earlier response, a conversation, a file or a
// container. A sub-agent shares its session's account, for what is encrypted travels
// between the two; so no Agent is told.
func (Provider) Inspect(method, path string, h http.Header, f body.Facts) provider.Request {
	r := provider.Request{
		Role:            role(method, spelled(path)),
		Model:           f.Model,
		Family:          Family(f.Model),
		Stream:          f.Stream,
		Bound:           isCodex(h) || f.Encrypted || len(f.Objects) > 0 || len(f.Items) > 0 || f.PreviousResponseID != "" || f.Conversation != "",
		KnownBackground: isBackground(h),
	}
	r.Upload = method == http.MethodPost && slices.Contains(materials, spelled(path))
	r.Session, r.Source = sessionOf(h, f)
	r.Tier, r.Features = tier(f.ServiceTier), []string{right(spelled(path))}
	return r
}

func role(method, path string) provider.Role {
	post := method == http.MethodPost
	switch path {
	case responses, chat, completions:
		switch {
		case post:
			return provider.Inference
		case path == chat: // the list of stored ones
			return provider.Stateful
		}
		return provider.Aside
	case compact:
		if post {
			return provider.Inference
		}
	case inputTokens:
		if post {
			return provider.Aside
		}
	}
	if below(path, responses) || collections.Has(path) || tuned(path) != "" {
		return provider.Stateful
	}
	return provider.Aside
}

// isBackground recognizes the work that Codex does beside its session: the writing of
// memories. A compaction is not such work, since the session's next step waits for it, and neither
// is a review, which the user typed.
func isBackground(h http.Header) bool {
	return strings.EqualFold(strings.TrimSpace(h.Get("X-Openai-Subagent")), "memory_consolidation") || isTrue(h.Get("X-Openai-Memgen-Request"))
}

// Serves implements provider.Provider. A plan serves what Codex asks for: the Responses
// API to everybody, and the rest to Codex alone, since the backend answers it in a shape of
// its own (its list of models is not the API's). Administration and the owner's own pages
// are nobody's: an ordinary credential is refused there, and such a refusal must not be
// held against it.
func (Provider) Serves(kind account.Kind, path string, h http.Header, _ provider.Request) bool {
	path = spelled(path)
	if kind == account.Subscription {
		return path == responses || path == compact || (slices.Contains(codexAside, path) && isCodex(h))
	}
	return below(path, root) && !below(path, "/v1/organization") && !below(path, "/v1/projects") && !below(path, "/v1/dashboard")
}

// Hint implements provider.Hinter.
func (Provider) Hint(path string, _ http.Header) string {
	return "the login of a ChatGPT plan serves the Responses API, and to Codex its further paths, but not " + path +
		" to this client. Add an API key for it: `holdfast account add NAME --provider openai --key-env OPENAI_API_KEY`."
}

// Target implements provider.Provider.
func (Provider) Target(kind account.Kind, path string) (base, upstreamPath string) {
	path = spelled(path)
	if kind == account.Subscription {
		return "https://chatgpt.com", codexRoot + strings.TrimPrefix(path, root)
	}
	return "https://api.openai.com", path
}

// isTrue reads a flag as this vendor's clients do.
func isTrue(value string) bool {
	value = strings.TrimSpace(value)
	return strings.EqualFold(value, "true") || value == "1"
}
