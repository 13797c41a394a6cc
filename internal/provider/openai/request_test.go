package openai_test

import (
	"net/http"
	"slices"
	"testing"

	"holdfast/internal/core/account"
	"holdfast/internal/provider"
	"holdfast/internal/provider/openai"
	"holdfast/internal/wire/body"
)

func TestRole(t *testing.T) {
	for _, c := range []struct {
		method, path string
		want         provider.Role
	}{
		{"POST", "/v1/responses", provider.Inference},
		{"POST", "/v1/responses/compact", provider.Inference}, // compaction-resume-branch
		{"POST", "/v1/chat/completions", provider.Inference},
		{"POST", "/v1/completions", provider.Inference},
		{"POST", "/backend-api/codex/responses", provider.Inference},
		{"POST", "/v1/responses/input_tokens", provider.Aside},
		{"GET", "/v1/models", provider.Aside},
		{"GET", "/v1/models/gpt-5.5", provider.Aside},
		{"POST", "/v1/embeddings", provider.Aside},
		{"POST", "/v1/moderations", provider.Aside},
		{"POST", "/v1/images/generations", provider.Aside},
		{"POST", "/v1/audio/transcriptions", provider.Aside},
		{"OPTIONS", "/v1/responses", provider.Aside},
		{"GET", "/v1/responses/resp_1", provider.Stateful},
		{"DELETE", "/v1/responses/resp_1", provider.Stateful},
		{"POST", "/v1/responses/resp_1/cancel", provider.Stateful},
		{"GET", "/v1/responses/resp_1/input_items", provider.Stateful},
		{"GET", "/v1/chat/completions", provider.Stateful},
		{"GET", "/v1/chat/completions/chatcmpl-1/messages", provider.Stateful},
		{"POST", "/v1/files", provider.Stateful},
		{"GET", "/v1/files/file-1/content", provider.Stateful},
		{"POST", "/v1/batches", provider.Stateful},
		{"POST", "/v1/conversations", provider.Stateful},
		{"GET", "/v1/conversations/conv_1/items", provider.Stateful},
		{"POST", "/v1/filesystem", provider.Aside},
	} {
		if got := (openai.Provider{}).Inspect(c.method, c.path, http.Header{}, body.Facts{}).Role; got != c.want {
			t.Errorf("%s %s: got %s, want %s", c.method, c.path, got, c.want)
		}
	}
}

func TestInspect(t *testing.T) {
	got := openai.Provider{}.Inspect("POST", "/v1/responses", http.Header{}, body.Facts{Model: "GPT-5.5-2026-03-01", Stream: true})
	if got.Model != "GPT-5.5-2026-03-01" || got.Family != "gpt-5.5" || !got.Stream || !slices.Equal(got.Features, []string{"scope:responses"}) {
		t.Errorf("got %+v, want the model as named, its family, a stream, and the right to the family", got)
	}
	if got.Bound || got.Stay || got.KnownBackground || got.Agent != "" {
		t.Errorf("got %+v, want nothing more", got)
	}
	if got := (openai.Provider{}).Inspect("POST", "/v1/responses", http.Header{}, body.Facts{}); got.Tier != "" || got.Family != "" {
		t.Errorf("without a model: got %+v, want neither family nor features", got)
	}
}

func TestFamily(t *testing.T) {
	for model, want := range map[string]string{
		"":                                      "",
		"gpt-5.5":                               "gpt-5.5",
		"gpt-4o-2024-08-06":                     "gpt-4o",
		"chatgpt-4o-latest":                     "chatgpt-4o",
		" GPT-5.3-Codex-Spark":                  "gpt-5.3-codex-spark",
		"ft:gpt-4o-mini-2024-07-18:owner::abc1": "gpt-4o-mini",
		"gpt-5-20250807":                        "gpt-5-20250807",
		"-2024-08-06":                           "-2024-08-06",
		"gpt-4-0613":                            "gpt-4-0613",
	} {
		if got := openai.Family(model); got != want {
			t.Errorf("%q: got %q, want %q", model, got, want)
		}
	}
}

// Cases of account-owned-state-crosses-accounts.
func TestBound(t *testing.T) {
	h := func(name, value string) http.Header {
		h := http.Header{}
		h.Set(name, value)
		return h
	}
	for _, c := range []struct {
		name string
		h    http.Header
		f    body.Facts
		want bool
	}{
		{"nothing", http.Header{}, body.Facts{Model: "gpt-5.5", PromptCacheKey: "k"}, false},
		{"an SDK", h("User-Agent", "OpenAI/Python 2.1.0"), body.Facts{}, false},
		{"opencode", http.Header{"Session-Id": {"ses_1"}, "User-Agent": {"opencode/1.18.33"}}, body.Facts{}, false},
		{"Codex exec", h("Originator", "codex_exec"), body.Facts{}, true},
		{"Codex CLI", h("Originator", "codex_cli_rs"), body.Facts{}, true},
		{"Codex TUI", h("Originator", "codex-tui"), body.Facts{}, true},
		{"Codex Desktop", h("Originator", "Codex Desktop"), body.Facts{}, true},
		{"Codex by its agent alone", h("User-Agent", "codex_cli_rs/0.171.0 (Linux 6.1; x86_64) xterm"), body.Facts{}, true},
		{"Codex by a header of its own", h("x-codex-window-id", "s:0"), body.Facts{}, true},
		{"an empty header of its own", h("x-codex-window-id", ""), body.Facts{}, false},
		{"a turn's state", h("x-codex-turn-state", "opaque"), body.Facts{}, true},
		{"a name that only begins so", h("Originator", "codexample"), body.Facts{}, false},
		{"encrypted reasoning", http.Header{}, body.Facts{Encrypted: true}, true},
		{"an earlier response", http.Header{}, body.Facts{PreviousResponseID: "resp_1"}, true},
		{"a conversation", http.Header{}, body.Facts{Conversation: "conv_1"}, true},
		{"a file", http.Header{}, body.Facts{Objects: []string{"file-a"}}, true},
	} {
		if got := (openai.Provider{}).Inspect("POST", "/v1/responses", c.h, c.f).Bound; got != c.want {
			t.Errorf("%s: got bound %v, want %v", c.name, got, c.want)
		}
	}
}

func TestKnownBackground(t *testing.T) {
	for _, c := range []struct {
		header, value string
		want          bool
	}{
		{"x-openai-subagent", "review", false}, // the user typed it
		{"x-openai-subagent", "memory_consolidation", true},
		{"x-openai-subagent", "compact", false}, // the session's next step waits for it
		{"x-openai-subagent", "collab_spawn", false},
		{"x-openai-subagent", "", false},
		{"x-openai-memgen-request", "true", true},
		{"x-openai-memgen-request", "false", false},
		{"x-codex-guardian", "reviewer", false},
	} {
		h := http.Header{}
		h.Set(c.header, c.value)
		if got := (openai.Provider{}).Inspect("POST", "/v1/responses", h, body.Facts{}).KnownBackground; got != c.want {
			t.Errorf("%s: %s: got %v, want %v", c.header, c.value, got, c.want)
		}
	}
}

// Cases of side-routes-and-probes: a plan's list of models is Codex's alone.
func TestServesAndTarget(t *testing.T) {
	const plan = "https://chatgpt.com/backend-api/codex"
	for _, c := range []struct {
		path           string
		h              http.Header
		key, planServe bool
		target         string // on a plan
	}{
		{"/v1/responses", http.Header{}, true, true, plan + "/responses"},
		{"/v1/responses", codex, true, true, plan + "/responses"},
		{"/backend-api/codex/responses", codex, true, true, plan + "/responses"},
		{"/v1/responses/compact", codex, true, true, plan + "/responses/compact"},
		{"/v1/models", codex, true, true, plan + "/models"},
		{"/v1/models", http.Header{}, true, false, plan + "/models"},
		{"/v1/images/generations", codex, true, true, plan + "/images/generations"},
		{"/v1/images/generations", http.Header{}, true, false, plan + "/images/generations"},
		{"/v1/memories/trace_summarize", codex, true, true, plan + "/memories/trace_summarize"},
		{"/v1/chat/completions", http.Header{}, true, false, plan + "/chat/completions"},
		{"/v1/completions", http.Header{}, true, false, plan + "/completions"},
		{"/v1/embeddings", codex, true, false, plan + "/embeddings"},
		{"/v1/responses/resp_1", codex, true, false, plan + "/responses/resp_1"},
		{"/v1/files", codex, true, false, plan + "/files"},
		{"/v1/organization/usage/completions", http.Header{}, false, false, plan + "/organization/usage/completions"},
		{"/v1/dashboard/billing/credit_grants", http.Header{}, false, false, plan + "/dashboard/billing/credit_grants"},
		{"/v1x", http.Header{}, false, false, plan + "x"},
		{"/backend-api/wham/usage", codex, false, false, plan + "/backend-api/wham/usage"},
	} {
		p := openai.Provider{}
		r := p.Inspect("POST", c.path, c.h, body.Facts{})
		if got := p.Serves(account.Key, c.path, c.h, r); got != c.key {
			t.Errorf("%s, key: got %v, want %v", c.path, got, c.key)
		}
		if got := p.Serves(account.Subscription, c.path, c.h, r); got != c.planServe {
			t.Errorf("%s, plan: got %v, want %v", c.path, got, c.planServe)
		}
		if base, path := p.Target(account.Subscription, c.path); base+path != c.target {
			t.Errorf("%s, plan: got %s%s, want %s", c.path, base, path, c.target)
		}
	}
	for path, want := range map[string]string{
		"/v1/chat/completions": "/v1/chat/completions", "/v1/files/file-1": "/v1/files/file-1", "/backend-api/codex/responses": "/v1/responses",
	} {
		if base, got := (openai.Provider{}).Target(account.Key, path); base != "https://api.openai.com" || got != want {
			t.Errorf("%s, key: got %s%s, want https://api.openai.com%s", path, base, got, want)
		}
	}
}
