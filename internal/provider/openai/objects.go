package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"holdfast/internal/provider"
	"holdfast/internal/wire/body"
)

// containerLife is how long a container is remembered: it ends twenty minutes after its
// last use, or when its maker said.
const containerLife = 24 * time.Hour

// collections are what can be named in a path, as the SDKs have it (TypeScript 7.59.0, Go
// 3.99.0, Python 3.57.0, which name the same; 2026-12-01). A response is kept for thirty
// days, unless it belongs to a conversation. What is below /v1/organization and /v1/projects
// takes no ordinary credential and is not served.
var collections = provider.Collections{
	{Path: responses, Keep: provider.Stored, Verbs: []string{"compact", "input_tokens"}},
	{Path: chat, Keep: provider.Stored},
	{Path: "/v1/conversations", Keep: provider.Lasting},
	{Path: "/v1/files", Keep: provider.Lasting},
	{Path: "/v1/uploads", Keep: containerLife},
	{Path: "/v1/batches", Keep: provider.Lasting},
	{Path: "/v1/containers", Keep: containerLife},
	{Path: "/v1/vector_stores", Keep: provider.Lasting},
	{Path: "/v1/assistants", Keep: provider.Lasting},
	{Path: "/v1/threads", Keep: provider.Lasting, Makes: []string{"runs"}},
	{Path: "/v1/fine_tuning/jobs", Keep: provider.Lasting},
	{Path: "/v1/fine_tuning/checkpoints", Keep: provider.Lasting},
	{Path: "/v1/evals", Keep: provider.Lasting},
	{Path: "/v1/videos/characters", Keep: provider.Lasting},
	{Path: "/v1/videos", Keep: provider.Lasting, Makes: []string{"edits", "extensions", "remix"}},
	{Path: "/v1/skills", Keep: provider.Lasting},
	{Path: "/v1/agents/automations", Keep: provider.Lasting, Makes: []string{"invocations"}},
	{Path: "/v1/agents/environments/templates", Keep: provider.Lasting},
	{Path: "/v1/agents/environments", Keep: provider.Lasting},
	{Path: "/v1/agents/sessions", Keep: provider.Lasting},
	{Path: "/v1/agents", Keep: provider.Lasting},
	{Path: "/v1/audio/voices", Keep: provider.Lasting},
	{Path: "/v1/audio/voice_consents", Keep: provider.Lasting},
	{Path: "/v1/chatkit/sessions", Keep: provider.Lasting},
	{Path: "/v1/chatkit/threads", Keep: provider.Lasting},
	{Path: calls, Keep: containerLife},
	{Path: "/v1/live/sessions", Keep: containerLife, Makes: []string{"fork"}},
	{Path: "/v1/safety/alerts", Keep: provider.Lasting},
	{Path: "/v1/safety/cases", Keep: provider.Lasting},
	{Path: "/v1/vaults", Keep: provider.Lasting},
	{Path: "/v1/webhook_endpoints", Keep: provider.Lasting},
}

// calls are told of in the head of an answer alone.
const calls = "/v1/realtime/calls"

// params are the members of a query that name an object whose listing they narrow (the same
// SDKs).
var params = []string{"agent_id", "session_id"}

// tuned is the name of a model in a path that was tuned on one account; empty for none. All
// others are everybody's.
func tuned(path string) string {
	if id, ok := strings.CutPrefix(path, models+"/"); ok && strings.HasPrefix(id, "ft:") {
		return id
	}
	return ""
}

// tunedModel is the model that a body names, where it was tuned on one account; empty for
// every other.
func tunedModel(f body.Facts) string {
	if strings.HasPrefix(f.Model, "ft:") {
		return f.Model
	}
	return ""
}

// servedBy is the tuned model that gave a good answer: the account has it.
func servedBy(f body.Facts) []provider.Object {
	if id := tunedModel(f); id != "" {
		return []provider.Object{{ID: id, Keep: provider.Lasting}}
	}
	return nil
}

// materials are the collections of what one later request names several of.
var materials = []string{"/v1/files", "/v1/uploads", "/v1/containers", "/v1/vector_stores", "/v1/skills", "/v1/assistants"}

// Names implements provider.Keeper. What a response continues decides before the items
// and files that are given to it.
func (Provider) Names(path, query string, f body.Facts) []string {
	ids := collections.Named(spelled(path), query, params...)
	for _, id := range []string{tuned(spelled(path)), f.PreviousResponseID, f.Conversation, tunedModel(f)} {
		if id != "" {
			ids = append(ids, id)
		}
	}
	if path := spelled(path); collections.Has(path) && path != responses && path != chat {
		ids = append(ids, f.Parts...)
	}
	return append(append(ids, f.Items...), f.Objects...)
}

// Lists implements provider.Keeper.
func (Provider) Lists(method, path string) (time.Duration, bool) {
	return collections.Lists(method, spelled(path))
}

// Removed implements provider.Keeper.
func (Provider) Removed(method, path string) string {
	if id := tuned(spelled(path)); id != "" && method == http.MethodDelete {
		return id
	}
	return collections.Removed(method, spelled(path))
}

// HeadMade implements provider.HeadKeeper: the answer to the offer of a call is the other
// side's description of it, and the call's id the end of its Location.
func (Provider) HeadMade(method, path string, h http.Header) []provider.Object {
	if method != http.MethodPost || spelled(path) != calls {
		return nil
	}
	location := h.Get("Location")
	if i := strings.LastIndexByte(location, '/'); i >= 0 && i+1 < len(location) {
		return []provider.Object{{ID: location[i+1:], Keep: containerLife}}
	}
	return nil
}

// response is the part of a response that names objects: itself, its conversation, its items, and
// the containers that code ran in.
type response struct {
	ID           text   `json:"id"`
	Object       text   `json:"object"`
	Store        *bool  `json:"store"`
	Output       []item `json:"output"`
	Conversation struct {
		ID text `json:"id"`
	} `json:"conversation"`
}

type item struct {
	ID        text `json:"id"`
	Container text `json:"container_id"`
}

func (r response) made(f body.Facts) []provider.Object {
	var made []provider.Object
	stored := (r.Object == "response" || r.Object == "") && !f.Unstored && (r.Store == nil || *r.Store)
	if r.ID != "" && stored {
		made = append(made, provider.Object{ID: string(r.ID), Keep: provider.Stored})
	}
	if r.Conversation.ID != "" {
		made = append(made, provider.Object{ID: string(r.Conversation.ID), Keep: provider.Lasting})
	}
	for n, i := range r.Output {
		if stored {
			made = append(made, provider.StoredItem(n, string(i.ID))...)
		}
		made = append(made, i.made()...)
	}
	return made
}

func (i item) made() []provider.Object {
	if i.Container == "" {
		return nil
	}
	return []provider.Object{{ID: string(i.Container), Keep: containerLife}}
}

// EventMade implements provider.Keeper. A response that is not stored cannot be named, and
// Codex stores none; a chat is stored only when that was asked for.
func (Provider) EventMade(f body.Facts, name string, data []byte) []provider.Object {
	unnamed := name == "" || name == "message"
	switch {
	case name == "response.created", unnamed && bytes.Contains(data, []byte(`"response.created"`)):
		var event struct {
			Response response `json:"response"`
		}
		_ = json.Unmarshal(data, &event) // what cannot be read names no object
		return append(servedBy(f), event.Response.made(f)...)
	case name == "response.output_item.added", name == "response.output_item.done", unnamed && bytes.Contains(data, []byte(`"response.output_item.`)):
		var made []provider.Object
		if name != "response.output_item.done" { // which has the same item, with all of its content
			made = provider.StreamedItem(f, data)
		}
		if !bytes.Contains(data, []byte(`"container_id"`)) {
			return made
		}
		var event struct {
			Item item `json:"item"`
		}
		_ = json.Unmarshal(data, &event)
		return append(made, event.Item.made()...)
	case name == "thread.created", name == "agent.session.created", unnamed && bytes.Contains(data, []byte(`"agent.session.created"`)):
		return begun(data)
	case unnamed && (f.Stored || tunedModel(f) != "") && bytes.Contains(data, []byte(`"chat.completion.chunk"`)):
		return chatMade(f, data)
	}
	return nil
}

// begun is the thread of a run, or the session of an agent, that a stream begins with.
func begun(data []byte) []provider.Object {
	var event struct {
		ID      text `json:"id"`
		Session struct {
			ID text `json:"id"`
		} `json:"session"`
	}
	_ = json.Unmarshal(data, &event) // what cannot be read names no object
	id := cmp.Or(event.Session.ID, event.ID)
	if id == "" {
		return nil
	}
	return []provider.Object{{ID: string(id), Keep: provider.Lasting}}
}

// chatMade is the object that an answer in chat names: it is stored only where that was asked for.
func chatMade(f body.Facts, data []byte) []provider.Object {
	made := servedBy(f)
	if f.Stored {
		made = append(made, storedChat(data)...)
	}
	return made
}

func storedChat(data []byte) []provider.Object {
	var c struct {
		ID text `json:"id"`
	}
	if _ = json.Unmarshal(data, &c); c.ID == "" {
		return nil
	}
	return []provider.Object{{ID: string(c.ID), Keep: provider.Stored}}
}

// others are the members by which the answer about one object names others: the results of
// a batch and of tuning, the file that an upload became, the conversation of a response, the
// thread that a run began, and the session that an automation began.
var others = []string{"output_file_id", "error_file_id", "file.id", "conversation.id", "thread_id", "session_id", "fine_tuned_model", "result_files"}

// BodyMade implements provider.Keeper. A finished batch names the files with its
// results, and a completed upload of the file that it became.
func (Provider) BodyMade(method, path string, f body.Facts, data []byte) []provider.Object {
	path = spelled(path)
	switch {
	case method == http.MethodPost && path == responses:
		var r response
		_ = json.Unmarshal(data, &r)
		return append(servedBy(f), r.made(f)...)
	case method == http.MethodPost && path == chat:
		return chatMade(f, data)
	case method == http.MethodPost && path == completions:
		return servedBy(f)
	}
	made := collections.Made(method, path, data, []string{"id", "session.id"}, others)
	if made != nil && method == http.MethodGet && below(path, responses) { // of work that went on in the background
		var r response
		_ = json.Unmarshal(data, &r)
		made = append(made, r.made(f)...)
	}
	return made
}
