package openai

import (
	"bytes"
	"encoding/json"
	"net/http"
	"time"

	"holdfast/internal/body"
	"holdfast/internal/provider"
)

// containerLife is how long a container is remembered: it ends twenty minutes after its
// last use, or when its maker said.
const containerLife = 24 * time.Hour

// collections are what can be named in a path. A response is kept for thirty days, unless
// it belongs to a conversation.
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
	{Path: "/v1/threads", Keep: provider.Lasting, Verbs: []string{"runs"}},
	{Path: "/v1/fine_tuning/jobs", Keep: provider.Lasting},
	{Path: "/v1/evals", Keep: provider.Lasting},
	{Path: "/v1/videos", Keep: provider.Lasting},
	{Path: "/v1/skills", Keep: provider.Lasting},
}

// Names implements provider.Keeper. What a response continues decides before the files
// that are given to it.
func (Provider) Names(path string, f body.Facts) []string {
	var ids []string
	for _, id := range []string{collections.Named(spelled(path)), f.PreviousResponseID, f.Conversation} {
		if id != "" {
			ids = append(ids, id)
		}
	}
	return append(ids, f.Objects...)
}

// Removed implements provider.Keeper.
func (Provider) Removed(method, path string) string {
	return collections.Removed(method, spelled(path))
}

// response is what tells of objects in a response: itself, its conversation, and the
// containers that code ran in.
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
	Container text `json:"container_id"`
}

func (r response) made(f body.Facts) []provider.Object {
	var made []provider.Object
	if r.ID != "" && (r.Object == "response" || r.Object == "") && !f.Unstored && (r.Store == nil || *r.Store) {
		made = append(made, provider.Object{ID: string(r.ID), Keep: provider.Stored})
	}
	if r.Conversation.ID != "" {
		made = append(made, provider.Object{ID: string(r.Conversation.ID), Keep: provider.Lasting})
	}
	for _, i := range r.Output {
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
		_ = json.Unmarshal(data, &event) // what cannot be read tells of nothing
		return event.Response.made(f)
	case name == "response.output_item.added", name == "response.output_item.done", unnamed && bytes.Contains(data, []byte(`"response.output_item.`)):
		if !bytes.Contains(data, []byte(`"container_id"`)) {
			return nil
		}
		var event struct {
			Item item `json:"item"`
		}
		_ = json.Unmarshal(data, &event)
		return event.Item.made()
	case unnamed && f.Stored && bytes.Contains(data, []byte(`"chat.completion.chunk"`)):
		return storedChat(data)
	}
	return nil
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

// BodyMade implements provider.Keeper. A finished batch tells of the files with its
// results, and a completed upload of the file that it became.
func (Provider) BodyMade(method, path string, f body.Facts, data []byte) []provider.Object {
	path = spelled(path)
	switch {
	case method == http.MethodPost && path == responses:
		var r response
		_ = json.Unmarshal(data, &r)
		return r.made(f)
	case method == http.MethodPost && path == chat:
		if !f.Stored {
			return nil
		}
		return storedChat(data)
	}
	return collections.Made(method, path, data, []string{"id"}, []string{"output_file_id", "error_file_id", "file.id", "conversation.id"})
}
