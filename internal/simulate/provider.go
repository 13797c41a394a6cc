package simulate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Account is one simulated account.
type Account struct {
	// Name is what an owner would call it; Credential what it is known by, as an API key
	// (x-api-key) or as a bearer token. It is no secret: it opens nothing but this.
	Name, Credential string
}

// Accounts are the two accounts a Provider knows.
func Accounts() []Account {
	return []Account{
		{Name: "simulated-one", Credential: "simulated-credential-one"},
		{Name: "simulated-two", Credential: "simulated-credential-two"},
	}
}

// maxBody is Anthropic's own limit on a Messages request.
const maxBody = 32 << 20

// model is one entry of the model list.
type model struct {
	Type      string `json:"type"`
	ID        string `json:"id"`
	Name      string `json:"display_name"`
	CreatedAt string `json:"created_at"`
}

var models = []model{
	{"model", "claude-opus-5", "Claude Opus 5 (simulated)", "2026-06-01T00:00:00Z"},
	{"model", "claude-sonnet-5", "Claude Sonnet 5 (simulated)", "2026-05-01T00:00:00Z"},
	{"model", "claude-haiku-4-5-20251001", "Claude Haiku 4.5 (simulated)", "2025-10-01T00:00:00Z"},
}

// Provider is the simulated provider. Make one with New; it is safe for concurrent use.
type Provider struct {
	mux   *http.ServeMux
	plans *plans
	now   func() time.Time
}

// New makes a provider whose windows begin now. A nil clock means time.Now.
func New(now func() time.Time) *Provider {
	if now == nil {
		now = time.Now
	}
	p := &Provider{mux: http.NewServeMux(), now: now, plans: newPlans(now())}
	p.mux.HandleFunc("POST /v1/messages", p.known(p.messages))
	p.mux.HandleFunc("POST /v1/messages/count_tokens", p.known(p.countTokens))
	p.mux.HandleFunc("GET /v1/models", p.known(p.listModels))
	p.mux.HandleFunc("GET /v1/models/{id}", p.known(p.showModel))
	p.mux.HandleFunc("HEAD /{$}", func(http.ResponseWriter, *http.Request) {})
	p.mux.HandleFunc("HEAD /api/hello", func(http.ResponseWriter, *http.Request) {})
	p.mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		p.fail(w, http.StatusNotFound, "not_found_error", "Not found: the simulated provider does not have this path.")
	})
	return p
}

func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.mux.ServeHTTP(w, r) }

// known lets only requests with a simulated account's credential through.
func (p *Provider) known(serve func(http.ResponseWriter, *http.Request, *plan)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		shown := r.Header.Get("x-api-key")
		if shown == "" {
			if scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "bearer") {
				shown = token
			}
		}
		account := p.plans.of(shown)
		if account == nil {
			p.fail(w, http.StatusUnauthorized, "authentication_error", "invalid x-api-key")
			return
		}
		w.Header().Set("anthropic-organization-id", account.organization)
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		serve(w, r, account)
	}
}

// asked is what the simulation wants to know of a request's body.
type asked struct {
	Model        string            `json:"model"`
	MaxTokens    int64             `json:"max_tokens"`
	Stream       bool              `json:"stream"`
	Messages     []json.RawMessage `json:"messages"`
	OutputConfig struct {
		Format struct {
			Schema struct {
				Properties map[string]json.RawMessage `json:"properties"`
			} `json:"schema"`
		} `json:"format"`
	} `json:"output_config"`

	size int64 // of the whole body, in bytes
}

// read takes the body apart, or answers why it can't and returns false.
func (p *Provider) read(w http.ResponseWriter, r *http.Request) (asked, bool) {
	var a asked
	body, err := io.ReadAll(r.Body)
	if err != nil {
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			p.fail(w, http.StatusRequestEntityTooLarge, "request_too_large", "Request exceeds the maximum size")
		}
		return a, false // otherwise the client has gone, and nobody hears an answer
	}
	if err := json.Unmarshal(body, &a); err != nil {
		p.fail(w, http.StatusBadRequest, "invalid_request_error", "The request body is not valid JSON.")
		return a, false
	}
	for _, missing := range []struct {
		field string
		is    bool
	}{{"model", a.Model == ""}, {"messages", len(a.Messages) == 0}} {
		if missing.is {
			p.fail(w, http.StatusBadRequest, "invalid_request_error", missing.field+": Field required")
			return a, false
		}
	}
	a.size = int64(len(body))
	return a, true
}

func (p *Provider) messages(w http.ResponseWriter, r *http.Request, account *plan) {
	a, ok := p.read(w, r)
	if !ok {
		return
	}
	text := fmt.Sprintf("This is holdfast's simulation: no model was asked. Account %q received your conversation with %s.",
		account.name, count(len(a.Messages), "message"))
	stop := "end_turn"
	switch {
	case a.MaxTokens == 1: // a probe, which asks for one token
		text, stop = "S", "max_tokens"
	case a.OutputConfig.Format.Schema.Properties["title"] != nil:
		text = `{"title":"Simulated conversation"}`
	}
	m := Message{Model: a.Model, Blocks: []Block{{Text: text}}, StopReason: stop}
	var limits Unified
	m.ID, m.Usage, limits = p.plans.charge(account, p.now(), conversation(r), tokens(a.size), tokens(int64(len(text))))
	for name, values := range limits.Header() {
		w.Header()[name] = values
	}
	if !a.Stream {
		p.answer(w, http.StatusOK, m.JSON())
		return
	}
	p.begin(w, http.StatusOK, "text/event-stream; charset=utf-8")
	flush := http.NewResponseController(w)
	for _, e := range m.Events() {
		if _, err := w.Write(e.Bytes()); err != nil {
			return // the client has gone
		}
		if err := flush.Flush(); err != nil {
			return
		}
	}
}

func (p *Provider) countTokens(w http.ResponseWriter, r *http.Request, _ *plan) {
	if a, ok := p.read(w, r); ok {
		p.answer(w, http.StatusOK, encode(map[string]int64{"input_tokens": tokens(a.size)}))
	}
}

func (p *Provider) listModels(w http.ResponseWriter, _ *http.Request, _ *plan) {
	p.answer(w, http.StatusOK, encode(struct {
		Data    []model `json:"data"`
		HasMore bool    `json:"has_more"`
		First   string  `json:"first_id"`
		Last    string  `json:"last_id"`
	}{models, false, models[0].ID, models[len(models)-1].ID}))
}

func (p *Provider) showModel(w http.ResponseWriter, r *http.Request, _ *plan) {
	for _, m := range models {
		if m.ID == r.PathValue("id") {
			p.answer(w, http.StatusOK, encode(m))
			return
		}
	}
	p.fail(w, http.StatusNotFound, "not_found_error", "model: "+r.PathValue("id"))
}

func (p *Provider) fail(w http.ResponseWriter, status int, kind, message string) {
	id := p.plans.number("req_simulated_")
	w.Header().Set("request-id", id)
	p.answer(w, status, Failure{Type: kind, Message: message, RequestID: id}.JSON())
}

func (p *Provider) answer(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	p.begin(w, status, "application/json")
	_, _ = w.Write(body) // an error means that the client has gone
}

func (p *Provider) begin(w http.ResponseWriter, status int, contentType string) {
	if w.Header().Get("request-id") == "" {
		w.Header().Set("request-id", p.plans.number("req_simulated_"))
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
}

// conversation names the client's session, as far as clients name it; requests without
// one share a name, which only blurs the simulated cache figures.
func conversation(r *http.Request) string {
	for _, name := range []string{"x-claude-code-session-id", "x-session-id"} {
		if v := r.Header.Get(name); v != "" {
			return v + "/" + r.Header.Get("x-claude-code-agent-id")
		}
	}
	return ""
}

// tokens estimates at four bytes a token, and at least one.
func tokens(bytes int64) int64 { return max(1, bytes/4) }

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
