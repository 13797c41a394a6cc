package xai

import (
	"net/http"
	"slices"
	"strings"

	"holdfast/internal/core/account"
	"holdfast/internal/provider"
	"holdfast/internal/provider/session"
	"holdfast/internal/wire/body"
)

// Features that an account may lack.
const (
	// ChatEndpoint is access to inference at all, which plans were cut off from at times
	// though their login is good.
	ChatEndpoint = "chat-endpoint"
	// KeyPath is a path that takes no login's token. No request lists it: a refusal for it
	// is one for that request.
	KeyPath = "key-path"
)

const (
	chat      = "/v1/chat/completions"
	responses = "/v1/responses"
	compact   = "/v1/responses/compact"
	messages  = "/v1/messages"
	models    = "/v1/models"
)

const (
	versionHeader = "X-Grok-Client-Version"
	modelHeader   = "X-Grok-Model-Override"
)

// below reports whether a path is root or lies below it.
func below(path, root string) bool {
	rest, ok := strings.CutPrefix(path, root)
	return ok && (rest == "" || rest[0] == '/')
}

func belowAny(path string, roots ...string) bool {
	for _, root := range roots {
		if below(path, root) {
			return true
		}
	}
	return false
}

// Dialect implements provider.Provider.
func (Provider) Dialect(path string) provider.Dialect { return provider.DialectOf(path) }

// Inspect implements provider.Provider.
//
// Bound are the requests with encrypted reasoning, which another account cannot decrypt,
// and those that continue or name what is stored on one account.
func (Provider) Inspect(method, path string, h http.Header, f body.Facts) provider.Request {
	r := provider.Request{
		Role:   role(method, path, f),
		Model:  f.Model,
		Stream: f.Stream,
		Bound:  f.Encrypted || f.PreviousResponseID != "" || f.Conversation != "" || len(f.Objects) > 0 || len(f.Items) > 0,
	}
	if r.Model == "" {
		r.Model = session.ID(h.Get(modelHeader))
	}
	r.Family = Family(r.Model)
	r.Upload = method == http.MethodPost && slices.Contains(materials, spelled(path))
	r.Session, r.Agent, r.Source = sessionOf(h, f)
	if r.Role == provider.Inference {
		r.Features = []string{ChatEndpoint}
	}
	r.KnownBackground = isBeside(h, unwaited)
	r.SideCall = r.KnownBackground || isBeside(h, waited)
	return r
}

// Family is the model family whose limits bind a model: the model itself, since every
// limit that xAI names is one model's.
func Family(model string) string { return strings.ToLower(strings.TrimSpace(model)) }

func role(method, path string, f body.Facts) provider.Role {
	switch {
	case method == http.MethodPost && belowAny(path, chat, messages):
		if isAside(path, f) {
			return provider.Aside
		}
		return provider.Inference
	case method == http.MethodPost && (path == responses || path == compact ||
		belowAny(path, "/v1/completions", "/v1/complete", "/v1/embeddings", "/v1/images", "/v1/videos", "/v1/audio")):
		return provider.Inference
	case below(path, responses), collections.Has(spelled(path)):
		return provider.Stateful // of one object: read it, delete it
	default:
		return provider.Aside
	}
}

// isAside recognizes the counting of tokens, and the request by which Claude Code asks
// for limit headers.
func isAside(path string, f body.Facts) bool {
	return below(path, messages) && (path != messages || f.MaxTokens == 1 && f.Messages == 1 && strings.TrimSpace(f.FirstUser) == "quota")
}

// Beginnings of the conversation names that the Grok CLI gives to what it asks for beside a
// session. Nobody waits for the first ones: the summary of a turn, a new title, a prompt that
// it suggests. Somebody may wait for the others: a check of a permission, a question by the
// way, a summary for one who comes back, and what is not known well.
var (
	unwaited = []string{"turn-summary-", "title-refresh-", "promptsuggest-"}
	waited   = []string{"perm-classifier-", "btw-", "recap-", "dream-", "flush-", "trace-classifier-"}
)

// isBeside reports whether the Grok CLI asks for something beside a session whose name begins
// like one of the names.
func isBeside(h http.Header, names []string) bool {
	conversation := h.Get(convHeader)
	return strings.TrimSpace(h.Get(sessionHeader)) != "" &&
		slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(conversation, name) })
}

// Serves implements provider.Provider.
//
// The proxy of subscriptions answers inference only where the client says which version
// of the Grok CLI it is, and refuses everyone else. That version is the client's to tell
// and never made up here, so such an account serves the Grok CLI alone. The list of models
// is not guarded so.
//
// A key serves the whole API, except where a request is about the account itself or make
// secrets for it: those paths are nobody's.
func (Provider) Serves(kind account.Kind, path string, h http.Header, _ provider.Request) bool {
	if kind != account.Subscription {
		return below(path, "/v1") && !belowAny(path, "/v1/api-key", "/v1/me", "/v1/realtime")
	}
	if below(path, models) {
		return true
	}
	return (path == chat || path == responses || path == messages) && isVersion(h.Get(versionHeader))
}

// OwnHeader implements provider.OwnClient.
func (Provider) OwnHeader() http.Header { return http.Header{versionHeader: {"0.0.0"}} }

// Hint implements provider.Hinter.
func (Provider) Hint(path string, h http.Header) string {
	const key = "add an API key, which serves every client: `holdfast account add NAME --provider xai --key-env XAI_API_KEY`."
	if path != chat && path != responses && path != messages {
		return "the login of a Grok subscription serves inference and the list of models only; for " + path + " " + key
	}
	if h.Get(versionHeader) == "" {
		return "the login of a Grok subscription serves the Grok CLI alone, which tells its version in x-grok-client-version, and this client is another. Use the Grok CLI, or " + key
	}
	return "x-grok-client-version has no version such as 1.0.13, and without one the login of a Grok subscription serves nobody. Use the Grok CLI as it is, or " + key
}

// Target implements provider.Provider. Both hosts spell their paths alike.
func (Provider) Target(kind account.Kind, path string) (base, upstreamPath string) {
	if kind == account.Subscription {
		return "https://cli-chat-proxy.grok.com", path
	}
	return "https://api.x.ai", path
}

// isVersion reports whether a text is a semantic version (semver.org, 2.0.0): three
// numbers, perhaps with a pre-release and a build behind.
func isVersion(text string) bool {
	text, build, hasBuild := strings.Cut(strings.TrimSpace(text), "+")
	text, pre, hasPre := strings.Cut(text, "-")
	numbers := strings.Split(text, ".")
	if len(numbers) != 3 || hasPre && !areIdentifiers(pre) || hasBuild && !areIdentifiers(build) {
		return false
	}
	for _, n := range numbers {
		if n == "" || strings.Trim(n, "0123456789") != "" || len(n) > 1 && n[0] == '0' {
			return false
		}
	}
	return true
}

func areIdentifiers(text string) bool {
	for word := range strings.SplitSeq(text, ".") {
		if word == "" {
			return false
		}
		for i := range len(word) {
			if c := word[i]; c != '-' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
				return false
			}
		}
	}
	return true
}
