package anthropic

import (
	"net/http"
	"slices"
	"strings"

	"holdfast/internal/core/account"
	"holdfast/internal/provider"
	"holdfast/internal/wire/body"
)

// Features that an account may lack. FeatureOf adds one for each model family.
const (
	// LongContext is the million-token context.
	LongContext = "long-context"
	// FastMode is the faster and dearer way of serving.
	FastMode = "fast-mode"
	// ThirdParty is being served though the client is not Claude Code. A subscription may
	// refuse it, or draw on paid extra usage for it.
	ThirdParty = "third-party-client"
	// ExtraUsage is paid extra usage for a reason that cannot be told from the request
	// beforehand, KeyPath a path that takes keys only. No request lists these two: a refusal
	// for them is one for that request.
	ExtraUsage = "extra-usage"
	KeyPath    = "key-path"
)

// FeatureOf names the right to use a model family at all, which a plan may lack.
func FeatureOf(family string) string { return "model:" + family }

const (
	messages    = "/v1/messages"
	countTokens = "/v1/messages/count_tokens"
	batches     = "/v1/messages/batches"
	complete    = "/v1/complete"
	models      = "/v1/models"
	files       = "/v1/files"
	skills      = "/v1/skills"
)

// below reports whether a path is root or lies below it.
func below(path, root string) bool {
	rest, ok := strings.CutPrefix(path, root)
	return ok && (rest == "" || rest[0] == '/')
}

// Dialect implements provider.Provider.
func (Provider) Dialect(path string) provider.Dialect { return provider.DialectOf(path) }

// Inspect implements provider.Provider.
//
// Bound are the requests that name a file, a container or a user profile, which exist in one
// workspace.
// Nothing else in a Messages body can be read by one account only: encrypted_content
// occurs in web search results alone, and signatures of thinking blocks are valid on every
// account.
func (Provider) Inspect(method, path string, h http.Header, f body.Facts) provider.Request {
	r := provider.Request{
		Role:   role(method, path, f),
		Model:  f.Model,
		Family: Family(f.Model),
		Stream: f.Stream,
		Bound:  len(f.Objects) > 0 || h.Get(profileHeader) != "",
		// The low-priority lane and the grace window belong to the account that offered
		// them; elsewhere the header asks for what was never offered.
		Stay: h.Get("Anthropic-Usage-Limit") != "",
	}
	r.Upload = method == http.MethodPost && slices.Contains(materials, path)
	r.Session, r.Agent, r.Source = sessionOf(h, f)
	r.Features = features(h, r)
	r.SideCall = isTitle(h, f)
	r.KnownBackground = r.SideCall
	return r
}

func role(method, path string, f body.Facts) provider.Role {
	switch {
	case collections.Has(path):
		return provider.Stateful
	case method != http.MethodPost:
		return provider.Aside
	case path == complete, path == messages && !isQuotaProbe(f):
		return provider.Inference
	default:
		return provider.Aside
	}
}

// isQuotaProbe recognizes the request by which Claude Code asks for the limit headers.
func isQuotaProbe(f body.Facts) bool {
	return f.MaxTokens == 1 && f.Messages == 1 && strings.TrimSpace(f.FirstUser) == "quota"
}

// isTitle recognizes the request by which Claude Code titles a session. Another
// client's structured answer may have a title too, so the session header is asked for.
func isTitle(h http.Header, f body.Facts) bool {
	return h.Get(sessionHeader) != "" && f.OutputTitle && f.ToolsEmpty && f.Messages == 1
}

func features(h http.Header, r provider.Request) []string {
	var list []string
	_, long := trimMarks(r.Model)
	fast := false
	for _, v := range h[betaHeader] {
		for flag := range strings.SplitSeq(v, ",") {
			flag = strings.TrimSpace(flag)
			long = long || strings.HasPrefix(flag, "context-1m")
			fast = fast || strings.HasPrefix(flag, "fast-mode")
		}
	}
	if long {
		list = append(list, LongContext)
	}
	if fast {
		list = append(list, FastMode)
	}
	if !strings.HasPrefix(h.Get("User-Agent"), "claude-cli/") {
		list = append(list, ThirdParty)
	}
	if r.Family != "" {
		list = append(list, FeatureOf(r.Family))
	}
	return list
}

// Serves implements provider.Provider. A subscription serves what Claude Code asks for;
// batches and the old completions are billed to keys only. Administration and the
// owner's own account pages are nobody's: an ordinary credential is refused there, and
// such a refusal must not be held against it.
func (Provider) Serves(kind account.Kind, path string, _ http.Header, _ provider.Request) bool {
	if kind == account.Subscription {
		return path == messages || path == countTokens || below(path, models) || below(path, files) || below(path, skills)
	}
	return below(path, "/v1") && !below(path, "/v1/organizations") && !below(path, "/v1/compliance") && !below(path, "/v1/oauth")
}

// Target implements provider.Provider: every account is served by one host, which
// spells its paths as clients do.
func (Provider) Target(_ account.Kind, path string) (base, upstreamPath string) {
	return "https://api.anthropic.com", path
}

// needs reports whether a request listed a feature.
func needs(r provider.Request, feature string) bool { return slices.Contains(r.Features, feature) }
