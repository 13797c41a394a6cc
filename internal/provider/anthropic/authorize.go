package anthropic

import (
	"net/http"
	"slices"
	"strings"

	"holdfast/internal/core/account"
	"holdfast/internal/core/credential"
	"holdfast/internal/provider"
)

const (
	betaHeader = "Anthropic-Beta"
	// oauthFlag is the one beta flag that a login's token needs and a key does not.
	oauthFlag = "oauth-2025-04-20"
)

// ScopeHeaders implements provider.Provider. A credential that is good for several workspaces
// names one with each request, by the header that the official SDKs use.
func (Provider) ScopeHeaders(account.Kind) credential.Scope {
	return credential.Scope{Workspace: "Anthropic-Workspace-Id"}
}

// Authorize implements provider.Provider. The values of h are never written to: they
// may be shared with the client's own headers.
func (p Provider) Authorize(h http.Header, kind account.Kind, c credential.Credential) {
	provider.PutScope(h, p.ScopeHeaders(kind), c.Scope)
	if kind == account.Subscription {
		h.Set("Authorization", "Bearer "+c.Bearer().Reveal())
		addFlag(h)
		return
	}
	h.Set("X-Api-Key", c.Bearer().Reveal())
	dropFlag(h)
}

// addFlag puts the flag behind the client's own, which stay as they came and in order.
func addFlag(h http.Header) {
	values := h[betaHeader]
	if slices.ContainsFunc(values, hasFlag) {
		return
	}
	values = slices.Clone(values)
	last := len(values) - 1
	if last < 0 || strings.TrimSpace(values[last]) == "" {
		h[betaHeader] = append(values, oauthFlag)
		return
	}
	values[last] += "," + oauthFlag
	h[betaHeader] = values
}

// dropFlag takes the flag out, and only it: the header of a key's request may come from
// a client that is logged in.
func dropFlag(h http.Header) {
	if !slices.ContainsFunc(h[betaHeader], hasFlag) {
		return
	}
	var values []string
	for _, v := range h[betaHeader] {
		flags := slices.DeleteFunc(strings.Split(v, ","), isFlag)
		if len(flags) > 0 {
			values = append(values, strings.TrimSpace(strings.Join(flags, ",")))
		}
	}
	if values == nil {
		h.Del(betaHeader)
		return
	}
	h[betaHeader] = values
}

func hasFlag(value string) bool { return slices.ContainsFunc(strings.Split(value, ","), isFlag) }

func isFlag(flag string) bool { return strings.TrimSpace(flag) == oauthFlag }
