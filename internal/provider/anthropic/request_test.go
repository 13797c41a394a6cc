package anthropic_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"holdfast/internal/core/account"
	"holdfast/internal/provider"
	"holdfast/internal/provider/anthropic"
	"holdfast/internal/wire/body"
)

func TestRole(t *testing.T) {
	turn := body.Facts{Model: "claude-opus-5", MaxTokens: 32000, Messages: 3, FirstUser: "hello"}
	probe := body.Facts{Model: "claude-haiku-4-5", MaxTokens: 1, Messages: 1, FirstUser: "quota"}
	for _, c := range []struct {
		method, path string
		f            body.Facts
		want         provider.Role
	}{
		{"POST", "/v1/messages", turn, provider.Inference},
		{"POST", "/v1/messages", body.Facts{}, provider.Inference},
		{"POST", "/v1/complete", turn, provider.Inference},
		{"POST", "/v1/messages", probe, provider.Aside},
		{"POST", "/v1/messages", body.Facts{MaxTokens: 1, Messages: 1, FirstUser: "hi"}, provider.Inference},
		{"POST", "/v1/messages", body.Facts{MaxTokens: 1, Messages: 2, FirstUser: "quota"}, provider.Inference},
		{"POST", "/v1/messages", body.Facts{MaxTokens: 64, Messages: 1, FirstUser: "quota"}, provider.Inference},
		{"GET", "/v1/messages", turn, provider.Aside},
		{"POST", "/v1/messages/count_tokens", turn, provider.Aside},
		{"GET", "/v1/models", body.Facts{}, provider.Aside},
		{"GET", "/v1/models/claude-opus-5", body.Facts{}, provider.Aside},
		{"POST", "/v1/messages/batches", turn, provider.Stateful},
		{"GET", "/v1/messages/batches/msgbatch_01Example/results", body.Facts{}, provider.Stateful},
		{"POST", "/v1/files", body.Facts{}, provider.Stateful},
		{"DELETE", "/v1/files/file_01Example", body.Facts{}, provider.Stateful},
		{"GET", "/v1/skills", body.Facts{}, provider.Stateful},
		{"GET", "/v1/filesystem", body.Facts{}, provider.Aside},
	} {
		if got := (anthropic.Provider{}).Inspect(c.method, c.path, claudeCode, c.f).Role; got != c.want {
			t.Errorf("%s %s %+v: got %s, want %s", c.method, c.path, c.f, got, c.want)
		}
	}
}

func TestInspect(t *testing.T) {
	h := claudeCode.Clone()
	h.Set("X-Claude-Code-Session-Id", session)
	h.Set("X-Claude-Code-Agent-Id", "a1")
	h.Set("Anthropic-Beta", "claude-code-20250219, context-1m-2025-08-07,fast-mode-2026-02-01")
	f := body.Facts{Model: "claude-opus-5", Stream: true, MaxTokens: 32000, Messages: 3, Encrypted: true}
	got := anthropic.Provider{}.Inspect("POST", "/v1/messages", h, f)
	if got.Model != "claude-opus-5" || got.Family != "opus" || !got.Stream || got.Session != session || got.Agent != "a1" {
		t.Errorf("got %+v", got)
	}
	if want := []string{"long-context", "fast-mode", "model:opus"}; !slices.Equal(got.Features, want) {
		t.Errorf("features: got %q, want %q", got.Features, want)
	}
	if got.Bound || got.Stay || got.KnownBackground {
		t.Errorf("got bound %v, stay %v, known background %v; want none", got.Bound, got.Stay, got.KnownBackground)
	}
}

func TestFeatures(t *testing.T) {
	for _, c := range []struct {
		name  string
		agent string
		beta  []string
		model string
		want  []string
	}{
		{"ordinary", "claude-cli/2.1.332 (external, cli)", []string{"claude-code-20250219"}, "claude-haiku-4-5", []string{"model:haiku"}},
		{"long by mark", "claude-cli/2.1.332 (external, cli)", nil, "claude-opus-5[1M][1m]", []string{"long-context", "model:opus"}},
		{"long by the second header", "claude-cli/2.1.332 (external, cli)", []string{"a", "b, context-1m-2027-01-01"}, "claude-opus-5", []string{"long-context", "model:opus"}},
		{"another mark", "claude-cli/2", nil, "claude-opus-5[fast]", []string{"model:opus"}},
		{"another client", "opencode/1.18.33", nil, "claude-opus-5", []string{"third-party-client", "model:opus"}},
		{"no agent, no model", "", nil, "", []string{"third-party-client"}},
		{"a flag that only contains it", "claude-cli/2", []string{"no-context-1m"}, "claude-opus-5", []string{"model:opus"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := http.Header{"User-Agent": {c.agent}, "Anthropic-Beta": c.beta}
			got := anthropic.Provider{}.Inspect("POST", "/v1/messages", h, body.Facts{Model: c.model}).Features
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestStay(t *testing.T) {
	for value, want := range map[string]bool{"slow": true, "extended": true, "": false} {
		h := http.Header{"Anthropic-Usage-Limit": {value}}
		if got := (anthropic.Provider{}).Inspect("POST", "/v1/messages", h, body.Facts{}).Stay; got != want {
			t.Errorf("anthropic-usage-limit %q: got stay %v, want %v", value, got, want)
		}
	}
}

// TestKnownBackground is part of field case background-label-and-starvation: a title yields; a
// turn, which an interactive session waits for, does not.
func TestKnownBackground(t *testing.T) {
	title := body.Facts{Model: "claude-haiku-4-5", OutputTitle: true, ToolsEmpty: true, Messages: 1}
	named := http.Header{"X-Claude-Code-Session-Id": {session}}
	turn := title
	turn.ToolsEmpty = false
	longer := title
	longer.Messages = 3
	for _, c := range []struct {
		name string
		h    http.Header
		f    body.Facts
		want bool
	}{
		{"title of a session", named, title, true},
		{"another client's structured answer", http.Header{}, title, false},
		{"a turn with tools", named, turn, false},
		{"a conversation", named, longer, false},
	} {
		if got := (anthropic.Provider{}).Inspect("POST", "/v1/messages", c.h, c.f).KnownBackground; got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

func TestServes(t *testing.T) {
	for _, c := range []struct {
		path              string
		key, subscription bool
	}{
		{"/v1/messages", true, true},
		{"/v1/messages/count_tokens", true, true},
		{"/v1/models", true, true},
		{"/v1/models/claude-opus-5", true, true},
		{"/v1/files/file_01Example", true, true},
		{"/v1/skills", true, true},
		{"/v1/messages/batches", true, false},
		{"/v1/complete", true, false},
		{"/v1/organizations/rate_limits", false, false},
		{"/v1/oauth/token", false, false},
		{"/api/oauth/usage", false, false},
		{"/v1/messagesque", true, false},
	} {
		p := anthropic.Provider{}
		if got := p.Serves(account.Key, c.path, nil, provider.Request{}); got != c.key {
			t.Errorf("%s by a key: got %v, want %v", c.path, got, c.key)
		}
		if got := p.Serves(account.Subscription, c.path, nil, provider.Request{}); got != c.subscription {
			t.Errorf("%s by a subscription: got %v, want %v", c.path, got, c.subscription)
		}
	}
}

func TestTarget(t *testing.T) {
	base, path := anthropic.Provider{}.Target(account.Subscription, "/v1/messages")
	if base != "https://api.anthropic.com" || path != "/v1/messages" {
		t.Errorf("got %s %s, want https://api.anthropic.com /v1/messages", base, path)
	}
}

// TestFamily is field case model-name-suffixes.
func TestFamily(t *testing.T) {
	for model, want := range map[string]string{
		"claude-opus-5":                         "opus",
		"claude-opus-4-5-20251101":              "opus",
		"claude-3-5-sonnet-20241022":            "sonnet",
		"claude-3-5-sonnet-latest":              "sonnet",
		"claude-sonnet-4-5":                     "sonnet",
		"claude-haiku-4-5@20251001":             "haiku",
		"claude-fable-5.1":                      "fable",
		"claude-opus-x[1m]":                     "opus",
		"claude-opus-x[1M][1m]":                 "opus",
		" Claude-Opus-5 [1m] ":                  "opus",
		"anthropic/claude-sonnet-5":             "sonnet",
		"opus":                                  "opus",
		"claude-oldname-2":                      "claude-oldname-2",
		"claude-oldname-2[1m]":                  "claude-oldname-2",
		"claude-oldname-2-20240229":             "claude-oldname-2",
		"claude-oldname-2-latest":               "claude-oldname-2",
		"claude-oldname-2-2024022":              "claude-oldname-2-2024022",
		"claude-opusculum-1":                    "claude-opusculum-1",
		"-20240229":                             "-20240229",
		"]":                                     "]",
		"[1m]":                                  "",
		"":                                      "",
		"claude-x" + strings.Repeat("[1m]", 50): "claude-x",
	} {
		if got := anthropic.Family(model); got != want {
			t.Errorf("Family(%q): got %q, want %q", model, got, want)
		}
	}
}
