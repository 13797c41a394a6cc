package conversation_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/core/account"
	"holdfast/internal/provider"
	"holdfast/internal/request/conversation"
	"holdfast/internal/wire/body"
)

const (
	session = "3b1e6c1a-5d0f-4a55-9c0b-0a4f2f7d1c11"
	header  = "x-claude-code-session-id"
)

type facts = body.Facts

// identify is Identify for one client of Anthropic.
func identify(explicit string, r provider.Request, f facts) conversation.Identity {
	return conversation.Identify("key-1", account.Anthropic, explicit, r, f)
}

var keyForm = regexp.MustCompile(`^[0-9A-Za-z_-]{43}$`)

func TestIdentifyOrder(t *testing.T) {
	bySession := identify("", provider.Request{Session: session, Source: header}, facts{}).Key
	byName := identify("mine", provider.Request{}, facts{}).Key
	byCacheKey := identify("", provider.Request{}, facts{PromptCacheKey: "cache"}).Key
	fingerprint := facts{FirstUser: "Fix the build.", SystemHash: [32]byte{1}, ToolsHash: [32]byte{2}}
	byFingerprint := identify("", provider.Request{}, fingerprint).Key
	keys := map[string]bool{}
	for _, key := range []string{bySession, byName, byCacheKey, byFingerprint} {
		if !keyForm.MatchString(key) || keys[key] {
			t.Errorf("key: got %q, want 43 characters, another for each", key)
		}
		keys[key] = true
	}

	all := fingerprint
	all.PromptCacheKey = "cache"
	tests := []struct {
		name     string
		explicit string
		request  provider.Request
		facts    facts
		want     conversation.Identity
	}{
		{"explicit before all", "mine", provider.Request{Session: session, Agent: "a-1", Source: header}, all, conversation.Identity{Key: byName, Source: "explicit"}},
		{"session before the body", "", provider.Request{Session: session, Source: header}, all, conversation.Identity{Key: bySession, Source: header}},
		{"session of unknown source", "", provider.Request{Session: session}, all, conversation.Identity{Key: bySession, Source: "session"}},
		{"cache key before user id", "", provider.Request{Session: session, Source: "metadata.user_id"}, all, conversation.Identity{Key: byCacheKey, Source: "prompt_cache_key"}},
		{"user id before the fingerprint", "", provider.Request{Session: session, Source: "metadata.user_id"}, fingerprint, conversation.Identity{Key: bySession, Source: "metadata.user_id"}},
		{"cache key before the fingerprint", "", provider.Request{}, all, conversation.Identity{Key: byCacheKey, Source: "prompt_cache_key"}},
		{"fingerprint", "", provider.Request{}, fingerprint, conversation.Identity{Key: byFingerprint, Source: "fingerprint"}},
		{"no user text", "", provider.Request{}, facts{SystemHash: [32]byte{1}, ToolsHash: [32]byte{2}, Messages: 1}, conversation.Identity{Source: "none"}},
		{"nothing", "", provider.Request{}, facts{}, conversation.Identity{Source: "none"}},
		{"blank is no name", " \t", provider.Request{Session: "  ", Source: header}, facts{PromptCacheKey: "\n", FirstUser: " \n"}, conversation.Identity{Source: "none"}},
		{"blank is no agent", "", provider.Request{Session: session, Agent: " ", Source: header}, facts{}, conversation.Identity{Key: bySession, Source: header}},
		{"an agent without a session", "", provider.Request{Agent: "a-1"}, fingerprint, conversation.Identity{Key: byFingerprint, Source: "fingerprint"}},
		{"what does not identify", "", provider.Request{Model: "m", Family: "f", Features: []string{"x"}, Stream: true, Bound: true},
			facts{UserID: "someone", Model: "m", MaxTokens: 5}, conversation.Identity{Source: "none"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, identify(tt.explicit, tt.request, tt.facts)); diff != "" {
				t.Errorf("identity (-want +got):\n%s", diff)
			}
		})
	}
}

// session-id-format-change: a session id gives one key wherever it was found and however
// its letters are written.
func TestSessionIDFormatChange(t *testing.T) {
	want := identify("", provider.Request{Session: session, Source: header}, facts{}).Key
	for name, got := range map[string]conversation.Identity{
		"upper case":           identify("", provider.Request{Session: strings.ToUpper(session), Source: header}, facts{}),
		"from user id":         identify("", provider.Request{Session: session, Source: "metadata.user_id"}, facts{}),
		"as prompt_cache_key":  identify("", provider.Request{}, facts{PromptCacheKey: session}),
		"explicit":             identify(session, provider.Request{}, facts{}),
		"explicit, with space": identify(" "+strings.ToUpper(session)+" ", provider.Request{}, facts{}),
	} {
		if got.Key != want {
			t.Errorf("key %s: got %s, want %s", name, got.Key, want)
		}
	}
	for _, pair := range [][2]string{
		{"abc", "ABC"}, // only UUIDs are known to mean the same
		{session + "0", strings.ToUpper(session) + "0"},
		{session, strings.ReplaceAll(session, "-", "")},
		{session[:35] + "g", session[:35] + "G"},
		{"3b1e6c1a05d0f04a5509c0b00a4f2f7d1c11", "3B1E6C1A05D0F04A5509C0B00A4F2F7D1C11"},
	} {
		a, b := identify(pair[0], provider.Request{}, facts{}), identify(pair[1], provider.Request{}, facts{})
		if a.Key == b.Key {
			t.Errorf("keys of %q and %q: got the same, want two", pair[0], pair[1])
		}
	}
}

func TestAgents(t *testing.T) {
	parent := identify("", provider.Request{Session: session, Source: header}, facts{})
	seen := map[string]string{parent.Key: "the session"}
	for _, r := range []provider.Request{
		{Session: session, Agent: "a-1"}, {Session: session, Agent: "a-2"}, {Session: session, Agent: session},
	} {
		r.Source = header
		got := identify("", r, facts{PromptCacheKey: "x", FirstUser: "y"})
		if got.Parent != parent.Key || got.Source != header {
			t.Errorf("agent %s: got parent %q, source %q, want %q, %q", r.Agent, got.Parent, got.Source, parent.Key, header)
		}
		if other, ok := seen[got.Key]; ok || !keyForm.MatchString(got.Key) {
			t.Errorf("agent %s: got key %q, as %q has; want one of its own", r.Agent, got.Key, other)
		}
		seen[got.Key] = r.Agent
	}
	if _, ok := seen[identify("", provider.Request{Session: "another", Agent: "a-1"}, facts{}).Key]; ok {
		t.Error("agent a-1 of another session: got a key of this one, want its own")
	}
	// No other cut of the same letters is the same agent.
	a := identify("", provider.Request{Session: "ab", Agent: "c"}, facts{})
	b := identify("", provider.Request{Session: "a", Agent: "bc"}, facts{})
	if a.Key == b.Key {
		t.Error("agents c of ab and bc of a: got one key, want two")
	}
}

func TestNamespaces(t *testing.T) {
	f := facts{FirstUser: "Fix the build.", ToolsHash: [32]byte{1}}
	seen := map[string]string{}
	add := func(name string, id conversation.Identity) {
		t.Helper()
		if other, ok := seen[id.Key]; ok {
			t.Errorf("key of %s: got that of %s, want another", name, other)
		}
		seen[id.Key] = name
	}
	for _, client := range []string{"key-1", "key-2", ""} {
		for _, p := range account.Providers {
			at := fmt.Sprintf(" of %q at %s", client, p)
			add("session"+at, conversation.Identify(client, p, "", provider.Request{Session: session}, f))
			add("cache key"+at, conversation.Identify(client, p, "", provider.Request{}, facts{PromptCacheKey: "cache"}))
			add("fingerprint"+at, conversation.Identify(client, p, "", provider.Request{}, f))
		}
	}
	// A name cannot be made to look like a fingerprint.
	add("tools and text as a name", identify(string(f.ToolsHash[:])+string(f.SystemHash[:])+f.FirstUser, provider.Request{}, facts{}))
	long := strings.Repeat("x", 64<<10)
	add("a long name", identify(long, provider.Request{}, facts{}))
	add("a longer name", identify(long+"x", provider.Request{}, facts{}))
}

func TestFingerprintParts(t *testing.T) {
	base := facts{FirstUser: "Fix the build.", ToolsHash: [32]byte{1}, SystemHash: [32]byte{2}}
	want := identify("", provider.Request{}, base).Key
	same := base
	same.Model, same.Messages, same.Stream, same.MaxTokens, same.UserID = "other", 9, true, 1, "someone"
	if got := identify("", provider.Request{Model: "other"}, same).Key; got != want {
		t.Errorf("key in a later turn by another model: got %s, want %s", got, want)
	}
	for name, f := range map[string]facts{
		"user text":      {FirstUser: "Write the docs.", ToolsHash: base.ToolsHash, SystemHash: base.SystemHash},
		"tools":          {FirstUser: base.FirstUser, ToolsHash: [32]byte{3}, SystemHash: base.SystemHash},
		"system text":    {FirstUser: base.FirstUser, ToolsHash: base.ToolsHash, SystemHash: [32]byte{3}},
		"places of both": {FirstUser: base.FirstUser, ToolsHash: base.SystemHash, SystemHash: base.ToolsHash},
	} {
		if identify("", provider.Request{}, f).Key == want {
			t.Errorf("key with other %s: got the same, want another", name)
		}
	}
}

// fallback-fingerprint-unstable-or-constant, from the bodies on: one key over six turns
// with a nonce, a date, a moving mark and tools in turn; another for the next
// conversation and the next client.
func TestFallbackFingerprintUnstableOrConstant(t *testing.T) {
	turn := func(n int, prompt string) facts {
		tools := []string{`{"name":"Bash"}`, `{"name":"Edit","cache_control":{"type":"ephemeral"}}`, `{"name":"Read"}`}
		messages := fmt.Sprintf(`{"role":"user","content":[{"type":"text","text":%q}]}`, prompt)
		for i := range n {
			messages += fmt.Sprintf(`,{"role":"assistant","content":"answer %d"},{"role":"user","content":[{"type":"text","text":"more"}]}`, i)
		}
		at := strings.LastIndex(messages, `}]}`)
		messages = messages[:at] + `,"cache_control":{"type":"ephemeral"}` + messages[at:]
		data := fmt.Sprintf(`{"model":"claude-opus-4-6","system":[`+
			`{"type":"text","text":"x-anthropic-billing-header: cc_version=2.1.99; cc_entrypoint=cli; cch=%05x;"},`+
			`{"type":"text","text":"You are an agent.\nToday's date: 2027-03-%02d, 10:%02d\nBe kind."}],"tools":[%s],"messages":[%s]}`,
			0xa0000+n, n+4, n, strings.Join(append(tools[n%3:], tools[:n%3]...), ","), messages)
		f, err := body.Inspect([]byte(data))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	want := identify("", provider.Request{}, turn(0, "Fix the build."))
	if want.Source != conversation.Fingerprint {
		t.Fatalf("source: got %s, want %s", want.Source, conversation.Fingerprint)
	}
	for n := range 6 {
		if got := identify("", provider.Request{}, turn(n, "Fix the build.")); got != want {
			t.Errorf("turn %d: got %+v, want %+v", n, got, want)
		}
	}
	if got := identify("", provider.Request{}, turn(0, "Write the docs.")); got.Key == want.Key {
		t.Error("second conversation: got the first one's key")
	}
	if got := conversation.Identify("key-2", account.Anthropic, "", provider.Request{}, turn(0, "Fix the build.")); got.Key == want.Key {
		t.Error("second client: got the first one's key")
	}

	// The Responses API, with its input as a string and as an array.
	responses := func(input string) string {
		f, err := body.Inspect([]byte(`{"model":"gpt-5.5","instructions":"Be brief.","input":` + input + `}`))
		if err != nil {
			t.Fatal(err)
		}
		return conversation.Identify("key-1", account.OpenAI, "", provider.Request{}, f).Key
	}
	a := responses(`"Fix the build."`)
	b := responses(`[{"role":"user","content":[{"type":"input_text","text":"Fix the build."}]},{"type":"function_call","name":"shell"}]`)
	if a != b || a == "" {
		t.Errorf("keys of a string and an array: got %q and %q, want one", a, b)
	}
	if responses(`"Write the docs."`) == a {
		t.Error("another input: got the same key, want another")
	}
}

// compaction-resume-branch: with a session, the content does not matter.
func TestCompactionResumeBranch(t *testing.T) {
	r := provider.Request{Session: session, Source: header}
	want := identify("", r, facts{FirstUser: "Fix the build.", SystemHash: [32]byte{1}})
	if got := identify("", r, facts{FirstUser: "This session continues an earlier one.", ToolsHash: [32]byte{2}}); got != want {
		t.Errorf("after compaction: got %+v, want %+v", got, want)
	}
}

func TestKeysTellNoIDs(t *testing.T) {
	id := identify("", provider.Request{Session: session, Agent: "agent-7", Source: header}, facts{})
	for _, raw := range []string{session, "agent-7", "key-1"} {
		if strings.Contains(id.Key+id.Parent, raw) {
			t.Errorf("identity %+v holds %q", id, raw)
		}
	}
}

func FuzzIdentify(f *testing.F) {
	f.Add("k", "x", "s", "a", "p", "u")
	f.Add("", "", strings.ToUpper(session), "", session, "")
	f.Fuzz(func(t *testing.T, client, explicit, session, agent, cacheKey, user string) {
		r := provider.Request{Session: session, Agent: agent, Source: "x"}
		b := facts{PromptCacheKey: cacheKey, FirstUser: user}
		id := conversation.Identify(client, account.OpenAI, explicit, r, b)
		if id != conversation.Identify(client, account.OpenAI, explicit, r, b) {
			t.Fatal("got two identities for one request")
		}
		if (id.Key == "") != (id.Source == conversation.None) || id.Key != "" && !keyForm.MatchString(id.Key) {
			t.Fatalf("got %+v, want a key and where it was found, or neither", id)
		}
		if id.Parent != "" && (id.Parent == id.Key || id.Parent != conversation.Identify(client, account.OpenAI, session, provider.Request{}, facts{}).Key) {
			t.Fatalf("got %+v, want the session's key as the parent", id)
		}
		if id.Key != "" && id.Key == conversation.Identify(client+"x", account.OpenAI, explicit, r, b).Key {
			t.Fatalf("got the same key %s for two clients", id.Key)
		}
	})
}

func BenchmarkIdentify(b *testing.B) {
	r := provider.Request{Session: session, Agent: "a-1", Source: header}
	b.ReportAllocs()
	for b.Loop() {
		identify("", r, facts{})
	}
}
