package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/object"
	"holdfast/internal/store"
	"holdfast/internal/test/upstreamtest"
)

// pages is how an API pages: what a request asks by, what a page tells, and how a client goes
// on with it.
type pages struct {
	provider  account.Provider
	path      string
	back      string                                         // what asks for what is before; empty for onwards
	members   func(from, to, of int, ids []string) string    // of a page of the ids from:to
	next      func(page map[string]any) (name, value string) // name is empty at the end
	positions func(q url.Values, ids []string) (from, to int)
	mods      []upstreamtest.Mod // of every answer
}

const pageSize = 3

func onward(q url.Values, ids []string, name string) (from, to int) {
	from = slices.Index(ids, q.Get(name)) + 1
	return from, min(len(ids), from+pageSize)
}

func idOf(page map[string]any, i int) string {
	data := page["data"].([]any)
	if i < 0 {
		i = len(data) - 1
	}
	return data[i].(map[string]any)["id"].(string)
}

// byToken pages by an opaque token that page tells in the member told.
func byToken(asked, told string) pages {
	return pages{
		members: func(_, to, of int, ids []string) string {
			if to == of {
				return `,"` + told + `":null`
			}
			return `,"` + told + `":"tok-` + ids[to] + `"`
		},
		next: func(page map[string]any) (string, string) {
			if token, ok := page[told].(string); ok {
				return asked, token
			}
			return "", ""
		},
		positions: func(q url.Values, ids []string) (int, int) {
			from := max(0, slices.Index(ids, strings.TrimPrefix(q.Get(asked), "tok-")))
			return from, min(len(ids), from+pageSize)
		},
	}
}

// byID pages by the id of a page's last object, which is told in last_id or stands in data
// alone.
func byID(asked string, told bool) pages {
	return pages{
		members: func(from, to, of int, ids []string) string {
			more := fmt.Sprintf(`,"has_more":%v`, to < of)
			if told {
				more += `,"first_id":"` + ids[from] + `","last_id":"` + ids[to-1] + `"`
			}
			return more
		},
		next: func(page map[string]any) (string, string) {
			if page["has_more"] != true {
				return "", ""
			}
			return asked, idOf(page, -1)
		},
		positions: func(q url.Values, ids []string) (int, int) { return onward(q, ids, asked) },
	}
}

func (p pages) with(mods ...upstreamtest.Mod) pages {
	p.mods = mods
	return p
}

func (p pages) of(provider account.Provider, path string) pages {
	p.provider, p.path = provider, path
	return p
}

// backwards asks for what comes before a page's first object.
func backwards(asked string) pages {
	return pages{
		back: asked,
		members: func(from, _, _ int, ids []string) string {
			return fmt.Sprintf(`,"has_more":%v,"first_id":"%s","last_id":"no"`, from > 0, ids[from])
		},
		next: func(page map[string]any) (string, string) {
			if page["has_more"] != true {
				return "", ""
			}
			return asked, page["first_id"].(string)
		},
		positions: func(q url.Values, ids []string) (int, int) {
			to := len(ids)
			if i := slices.Index(ids, q.Get(asked)); i >= 0 {
				to = i
			}
			return max(0, to-pageSize), to
		},
	}
}

// script answers with the pages of an account's own objects; a cursor of another's is not
// found.
func (p pages) script(owner string) upstreamtest.Script {
	var ids []string
	for i := range 8 {
		ids = append(ids, fmt.Sprintf("obj-%s-%d", owner, i))
	}
	return func(r *upstreamtest.Request) upstreamtest.Answer {
		q, _ := url.ParseQuery(r.Query)
		for _, values := range q {
			if strings.Contains(values[0], "obj-") && !strings.Contains(values[0], owner) {
				return jsonAnswer(http.StatusBadRequest, nil, `{"error":{"message":"no such cursor"}}`)(r)
			}
		}
		from, to := p.positions(q, ids)
		var data []string
		for _, id := range ids[from:to] {
			data = append(data, `{"id":"`+id+`","bytes":3}`)
		}
		return jsonAnswer(http.StatusOK, nil, `{"object":"list","data":[`+strings.Join(data, ",")+`]`+p.members(from, to, len(ids), ids)+`}`)(r)
	}
}

// all reads a listing to its end, as an SDK does, and returns its ids and who served each
// page. from has what a listing that goes backwards begins at; before is called before each
// page.
func (p pages) all(b *bench, key, from string, before func(page int)) (ids, served []string) {
	b.t.Helper()
	query := url.Values{"limit": {"3"}}
	if p.back != "" {
		query.Set(p.back, "obj-"+from+"-8") // one that it made itself
	}
	for n := 0; ; n++ {
		before(n)
		a := plainAsk("GET", p.path+"?"+query.Encode(), "")
		a.key = key
		r := b.do(a)
		if r.status != http.StatusOK || n > 8 {
			b.t.Fatalf("page %d, %s: got %d %s", n, query.Encode(), r.status, r.body)
		}
		var page map[string]any
		if err := json.Unmarshal([]byte(r.body), &page); err != nil {
			b.t.Fatal(err)
		}
		for _, o := range page["data"].([]any) {
			ids = append(ids, o.(map[string]any)["id"].(string))
		}
		served = append(served, r.account())
		name, cursor := p.next(page)
		if name == "" {
			return ids, served
		}
		query.Set(name, cursor)
	}
}

var ways = map[string]pages{
	"OpenAI, after":            byID("after", false).of(account.OpenAI, "/v1/files"),
	"OpenAI, last_id":          byID("after", true).of(account.OpenAI, "/openai/v1/vector_stores"),
	"OpenAI, next":             byToken("page", "next").of(account.OpenAI, "/openai/v1/agents"),
	"compressed":               byID("after", false).of(account.OpenAI, "/v1/files").with(upstreamtest.Gzip()),
	"byte by byte":             byID("after", false).of(account.OpenAI, "/v1/files").with(upstreamtest.ByteWise()),
	"Anthropic, after_id":      byID("after_id", true).of(account.Anthropic, "/anthropic/v1/messages/batches"),
	"Anthropic, page":          byToken("page", "next_page").of(account.Anthropic, "/anthropic/v1/files"),
	"Anthropic, page_token":    byToken("page_token", "next_page").of(account.Anthropic, "/anthropic/v1/skills"),
	"xAI, pagination_token":    byToken("pagination_token", "pagination_token").of(account.XAI, "/xai/v1/files"),
	"xAI, after":               byID("after", false).of(account.XAI, "/xai/v1/batches"),
	"Anthropic, before_id":     backwards("before_id").of(account.Anthropic, "/anthropic/v1/files"),
	"OpenAI, before":           backwards("before").of(account.OpenAI, "/openai/v1/assistants"),
	"a sort that is not known": byToken("page", "next_page").of(account.OpenAI, "/openai/v1/vaults"),
}

// TestPagesOfOneListing is field case pages-of-one-listing: a listing begins at one account
// and stays there until its end, whatever is picked meanwhile, and whichever process asks.
func TestPagesOfOneListing(t *testing.T) {
	for name, p := range ways {
		t.Run(name, func(t *testing.T) {
			b := keyBench(t, p.provider, "tansy", "thistle")
			now := b.clock.now()
			made := object.New(account.Account{ID: "acc-tansy", Provider: p.provider}, time.Hour, now)
			if _, _, err := b.store.ClaimOwner(t.Context(), object.Key(p.provider, "obj-tansy-8"), made, now); err != nil {
				t.Fatal(err)
			}
			upstreamPath := p.path[strings.Index(p.path, "/v1/"):]
			for _, who := range []string{"tansy", "thistle"} {
				b.account(who).OnPath(upstreamPath, p.script(who).With(p.mods...))
			}
			flip := func(page int) {
				if page%2 == 0 {
					b.prefer("tansy", "thistle")
				} else {
					b.prefer("thistle", "tansy")
				}
			}
			ids, served := p.all(b, b.key, "tansy", flip)
			if len(ids) != 8 || len(served) < 3 || slices.ContainsFunc(served, func(s string) bool { return s != "tansy" }) {
				t.Errorf("got %d objects from %v, want tansy's eight", len(ids), served)
			}
			// Another account's are listed by a client key for that one.
			key := b.newKey(catalog.ClientKey{Name: "other", Accounts: []account.ID{"acc-thistle"}})
			b.clock.advance(2 * time.Second)
			ids, served = p.all(b, key, "thistle", flip)
			if len(ids) != 8 || slices.ContainsFunc(served, func(s string) bool { return s != "thistle" }) {
				t.Errorf("with a key for it: got %d objects from %v, want thistle's eight", len(ids), served)
			}
		})
	}
}

// A page costs a write, one in the middle two, and none when it is asked for again; nothing
// else reads or writes more for it.
func TestCallsForPages(t *testing.T) {
	p := ways["OpenAI, after"]
	b := keyBench(t, p.provider, "tansy", "thistle")
	for _, who := range []string{"tansy", "thistle"} {
		b.account(who).OnPath("/v1/files", p.script(who))
	}
	counted := &tally{Backend: b.backend()}
	_, url := b.process(store.New(counted), nil)
	list := func(query string) ask {
		a := plainAsk("GET", "/v1/files?"+query, "")
		a.url = url
		return a
	}
	b.served(list("limit=3"))
	counted.take()
	for query, want := range map[string][2]int{"limit=3": {0, 0}, "limit=3&after=obj-tansy-2": {2, 2}} {
		// A path without a provider asks both that it may be for.
		b.served(list(query))
		if gets, keys, owners := counted.take(); gets != 1 || keys != want[0] || owners != want[1] {
			t.Errorf("%s: got %d reads with %d owners and %d writes, want 1, %d, %d", query, gets, keys, owners, want[0], want[1])
		}
	}
}

// What nobody is known to have is served by the one account that could, and by none of
// several: the one that happened to be picked would be the wrong one.
func TestNobodysObject(t *testing.T) {
	for _, tt := range []struct {
		provider     account.Provider
		method, path string
		body         string
	}{
		{account.OpenAI, "GET", "/v1/files/file-abc123", ""},
		{account.OpenAI, "GET", "/v1/files?after=file-abc123", ""},
		{account.OpenAI, "POST", "/v1/responses", `{"model":"gpt-5.5","input":"x","previous_response_id":"resp_abc1"}`},
		{account.OpenAI, "POST", "/v1/responses", `{"model":"gpt-5.5","input":[{"role":"user","content":[{"type":"input_file","file_id":"file-abc123"}]}]}`},
		{account.OpenAI, "GET", "/v1/models/ft:gpt-5.5:me::abc1", ""},
		{account.OpenAI, "GET", "/openai/v1/things_of_tomorrow/thing_abc1/parts", ""},
		{account.OpenAI, "GET", "/openai/v1/agents/sessions?agent_id=agent_1", ""},
		{account.Anthropic, "GET", "/anthropic/v1/sessions/sesn_abc1", ""},
		{account.Anthropic, "GET", "/anthropic/v1/files?scope_id=sesn_abc1", ""},
		{account.Anthropic, "GET", "/anthropic/v1/skills/skill_abc1", ""},
		{account.XAI, "GET", "/xai/v1/files/file_abc1", ""},
		{account.XAI, "GET", "/xai/v1/videos/abc1", ""},
	} {
		t.Run(tt.path, func(t *testing.T) {
			b := keyBench(t, tt.provider, "tansy", "thistle")
			path, _, _ := strings.Cut(tt.path[strings.Index(tt.path, "/v1/"):], "?")
			for _, who := range []string{"tansy", "thistle"} {
				b.account(who).OnPath(path, jsonAnswer(http.StatusOK, nil, `{"id":"x1"}`))
			}
			r := b.do(plainAsk(tt.method, tt.path, tt.body))
			if r.status != http.StatusNotFound || r.errorKind() != "not_found" || b.sent() != 0 || !strings.Contains(r.body, "one of tansy, thistle") {
				t.Errorf("got %d %s %s after %d sends, want it refused", r.status, r.errorKind(), r.body, b.sent())
			}
			alone := plainAsk(tt.method, tt.path, tt.body)
			alone.key = b.newKey(catalog.ClientKey{Name: "alone", Accounts: []account.ID{"acc-thistle"}})
			b.clock.advance(2 * time.Second)
			if r := b.served(alone); r.account() != "thistle" {
				t.Errorf("with a key for one account: got %s, want thistle", r.account())
			}
		})
	}
}

// What is alike on every account is nobody's, and served by whoever is picked.
func TestEverybodysNames(t *testing.T) {
	for path, p := range map[string]account.Provider{
		"/v1/models/gpt-5.5-2026-04-23": account.OpenAI, "/anthropic/v1/models/claude-opus-4-20250514": account.Anthropic,
		"/anthropic/v1/models?after_id=claude-opus-4-20250514": account.Anthropic,
		"/anthropic/v1/skills/pptx":                            account.Anthropic, "/anthropic/v1/skills/pptx/versions/20251013": account.Anthropic,
		"/xai/v1/language-models/grok-4": account.XAI, "/xai/v1/image-generation-models/grok-2-image": account.XAI,
	} {
		b := keyBench(t, p, "tansy", "thistle")
		upstreamPath, _, _ := strings.Cut(path[strings.Index(path, "/v1/"):], "?")
		b.account("tansy").OnPath(upstreamPath, jsonAnswer(http.StatusOK, nil, `{"id":"x"}`))
		if r := b.served(plainAsk("GET", path, "")); r.account() != "tansy" {
			t.Errorf("%s: got %s", path, r.account())
		}
	}
}

// The offer of a call is answered with a description of the other side; only the head has
// the call's id.
func TestCallOfARealtimeSession(t *testing.T) {
	b := keyBench(t, account.OpenAI, "tansy", "thistle")
	b.account("tansy").OnPath("/v1/realtime/calls", upstreamtest.Raw(http.StatusCreated, http.Header{
		"Content-Type": {"application/sdp"}, "Location": {"/v1/realtime/calls/rtc_abc1"},
	}, []byte("v=0\r\n")))
	b.account("tansy").OnPath("/v1/realtime/calls/rtc_abc1/hangup", jsonAnswer(http.StatusOK, nil, `{}`))
	offer := plainAsk("POST", "/openai/v1/realtime/calls", "v=0\r\n")
	offer.header.Set("Content-Type", "application/sdp")
	if r := b.do(offer); r.status != http.StatusCreated || r.header.Get("Location") != "/openai/v1/realtime/calls/rtc_abc1" {
		t.Fatalf("got %d, Location %q", r.status, r.header.Get("Location"))
	}
	b.prefer("thistle", "tansy")
	if r := b.served(plainAsk("POST", "/openai/v1/realtime/calls/rtc_abc1/hangup", "{}")); r.account() != "tansy" {
		t.Errorf("got %s, want tansy", r.account())
	}
}

// A header names a user profile, which one account has.
func TestUserProfileInTheHead(t *testing.T) {
	b := newBench(t, "marlow", "juniper")
	b.prefer("marlow", "juniper")
	b.account("marlow").OnPath("/v1/user_profiles", jsonAnswer(http.StatusOK, nil, `{"id":"uprof_1"}`))
	b.served(ask{path: "/anthropic/v1/user_profiles", body: `{}`})
	b.prefer("juniper", "marlow")
	if r := b.served(ask{header: http.Header{"Anthropic-User-Profile-Id": {"uprof_1"}}}); r.account() != "marlow" {
		t.Errorf("got %s, want marlow", r.account())
	}
	if r := b.do(ask{text: "another", header: http.Header{"Anthropic-User-Profile-Id": {"uprof_2"}}}); r.status != http.StatusNotFound {
		t.Errorf("nobody's: got %d, want it refused", r.status)
	}
}

// What a model gave to a client's own tool may look like an object's id. A conversation that
// goes on without a pin, a day later for example, is not lost for it.
func TestWordsOfAModelAreNoObjects(t *testing.T) {
	b := newBench(t, "marlow", "juniper")
	b.prefer("marlow", "juniper")
	history := `{"model":"claude-opus-5","max_tokens":10,"messages":[{"role":"user","content":"look at it"},
		{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"read","input":{"file_id":"file_abc123"}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"x"}]}]}`
	if r := b.served(ask{session: session(1), body: history}); r.account() != "marlow" {
		t.Errorf("got %s", r.account())
	}
}
