package gateway_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/object"
)

// sdkPath is one line of a list of what an API's SDKs ask for.
type sdkPath struct {
	method, path string // {} stands for an id
	// does is what the gateway does:
	//
	//	open     the request names nothing; whoever is picked serves
	//	shared   what it names is alike on every account; whoever is picked serves
	//	lists    a page of a listing, whose cursor has its owner recorded
	//	makes    it makes an object, whose owner is recorded
	//	object   it names an object: its owner serves; a nobody's is refused where several could
	//	refused  no ordinary credential is for it; nothing is sent
	does string
}

func sdkPaths(t *testing.T, p account.Provider) []sdkPath {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "paths", string(p)+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	var all []sdkPath
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) == 3 {
			all = append(all, sdkPath{fields[0], fields[1], fields[2]})
		}
	}
	if len(all) < 50 {
		t.Fatalf("got %d paths of %s only", len(all), p)
	}
	return all
}

// unprefixed are the paths that are routed without a provider in front, by their first
// segments behind the version. Whatever is not here is nothing without one.
var unprefixed = map[account.Provider][]string{
	account.Anthropic: {"messages", "complete", "models", "files"},
	account.OpenAI:    {"responses", "chat/completions", "completions", "embeddings", "images", "audio", "models", "files"},
	account.XAI:       {},
}

// Ids with a prefix that Anthropic's own skills do not have; elsewhere it is as good as any.
const (
	known    = "skill_known1"
	nobodys  = "skill_nobodys1"
	everyone = "alike-2026"
)

// TestEveryPathOfTheSDKs asks for every path that the official SDKs name and holds what
// becomes of it. Nothing that names an object is served by an account that happens to be
// picked.
func TestEveryPathOfTheSDKs(t *testing.T) {
	for p := range unprefixed {
		b := keyBench(t, p, "tansy", "thistle")
		b.prefer("tansy", "thistle")
		b.clock.advance(2 * time.Second)
		for _, s := range sdkPaths(t, p) {
			t.Run(string(p)+" "+s.method+" "+s.path, func(t *testing.T) { s.try(t, b, p) })
		}
	}
}

func (s sdkPath) try(t *testing.T, b *bench, p account.Provider) {
	now := b.clock.now()
	record := object.New(account.Account{ID: "acc-thistle", Provider: p}, 24*time.Hour, now)
	if _, _, err := b.store.ClaimOwner(t.Context(), object.Key(p, known), record, now); err != nil {
		t.Fatal(err)
	}
	answer := jsonAnswer(http.StatusOK, nil, `{"id":"x","object":"x"}`)
	do := func(id, query string) (r reply, sent int) {
		path := strings.ReplaceAll(s.path, "{}", id)
		for _, name := range []string{"tansy", "thistle"} {
			b.account(name).OnPath(path, answer)
		}
		before := b.sent()
		r = b.do(plainAsk(s.method, "/"+string(p)+path+query, "{}"))
		return r, b.sent() - before
	}
	switch s.does {
	case "open", "shared":
		if r, _ := do(everyone, ""); r.status != http.StatusOK || r.account() != "tansy" {
			t.Errorf("got %d from %s: %s, want it served by who is picked", r.status, r.account(), r.body)
		}
	case "object":
		if r, _ := do(known, ""); r.status != http.StatusOK || r.account() != "thistle" {
			t.Errorf("got %d from %s: %s, want it served by the owner", r.status, r.account(), r.body)
		}
		if r, sent := do(nobodys, ""); r.status != http.StatusNotFound || r.errorKind() != "not_found" || sent != 0 {
			t.Errorf("nobody's: got %d %s after %d sends, want it refused", r.status, r.errorKind(), sent)
		}
	case "lists":
		cursor := "Cursor1" + s.path
		answer = jsonAnswer(http.StatusOK, nil, `{"data":[{"id":"`+cursor+`"}]}`)
		if r, _ := do("", ""); r.status != http.StatusOK || r.account() != "tansy" {
			t.Fatalf("got %d from %s: %s", r.status, r.account(), r.body)
		}
		if r := b.recordedAs(p, cursor); r.Account != "acc-tansy" {
			t.Errorf("got %+v, want the cursor's owner", r)
		}
		if r, _ := do("", "?after="+known); r.status != http.StatusOK || r.account() != "thistle" {
			t.Errorf("another page: got %d from %s: %s, want it from the cursor's owner", r.status, r.account(), r.body)
		}
	case "makes":
		id := "Made1" + s.path
		answer = jsonAnswer(http.StatusOK, nil, `{"id":"`+id+`","request_id":"`+id+`"}`)
		if s.path == "/v1/realtime/calls" {
			answer = jsonAnswer(http.StatusCreated, http.Header{"Location": {"/v1/realtime/calls/" + strings.ReplaceAll(id, "/", "")}}, `{}`)
			id = strings.ReplaceAll(id, "/", "")
		}
		if r, _ := do("", ""); r.status >= 300 || r.account() != "tansy" {
			t.Fatalf("got %d from %s: %s", r.status, r.account(), r.body)
		}
		if r := b.recordedAs(p, id); r.Account != "acc-tansy" {
			t.Errorf("got %+v, want the owner of what was made", r)
		}
	case "refused":
		if r, sent := do(known, ""); r.status < 400 || r.errorKind() == "" || sent != 0 || len(r.body) < 40 {
			t.Errorf("got %d %s after %d sends: %s, want it refused with a sentence", r.status, r.errorKind(), sent, r.body)
		}
	default:
		t.Errorf("the list says %q", s.does)
	}
	s.without(t, b, p)
}

// without asks for the path with no provider in front.
func (s sdkPath) without(t *testing.T, b *bench, p account.Provider) {
	routed := false
	for _, top := range unprefixed[p] {
		rest, below := strings.CutPrefix(s.path, "/v1/"+top)
		routed = routed || below && (rest == "" || rest[0] == '/' && top != "chat/completions")
	}
	if p == account.XAI { // its models tell, or the owners of what is named
		return
	}
	a := plainAsk(s.method, strings.ReplaceAll(s.path, "{}", known), "{}")
	if p == account.Anthropic {
		a.header.Set("Anthropic-Version", "2023-06-01")
	}
	r := b.do(a)
	if nowhere := r.status == http.StatusNotFound && r.account() == "" && strings.Contains(r.body, "there is nothing at this path"); nowhere == routed {
		t.Errorf("without a provider: got %d %s, want it routed: %v", r.status, r.body, routed)
	}
}
