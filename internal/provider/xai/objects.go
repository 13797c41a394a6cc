package xai

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"holdfast/internal/provider"
	"holdfast/internal/wire/body"
)

// collections are what can be named in a path, by the API reference and what the Python SDK
// 1.21.0 names over gRPC (2026-12-01). Responses are kept for thirty days.
var collections = provider.Collections{
	{Path: responses, Keep: provider.Stored, Verbs: []string{"compact"}},
	{Path: "/v1/chat/deferred-completion", Keep: provider.Stored},
	{Path: "/v1/videos", Keep: provider.Stored, Verbs: []string{"generations", "edits", "extensions"}},
	{Path: "/v1/files", Keep: provider.Lasting, Verbs: []string{"uploadChunks"}, Makes: []string{"initialize"}},
	{Path: "/v1/batches", Keep: provider.Lasting},
	{Path: "/v1/collections", Keep: provider.Lasting},
	{Path: "/v1/skills", Keep: provider.Lasting},
	{Path: "/v1/custom-voices", Keep: provider.Lasting},
	{Path: "/v1/documents", Keep: provider.Lasting, Verbs: []string{"search"}},
}

// spelled gives a path with its verb in a segment of its own: xAI has some behind a colon,
// such as /v1/batches/ID:cancel.
func spelled(path string) string { return strings.ReplaceAll(path, ":", "/") }

// materials are the collections of what one later request names several of.
var materials = []string{"/v1/files", "/v1/files/initialize", "/v1/collections", "/v1/skills"}

// Names implements provider.Keeper. What a response continues decides before the items
// and files that are given to it.
func (Provider) Names(path, query string, f body.Facts) []string {
	ids := collections.Named(spelled(path), query)
	for _, id := range []string{f.PreviousResponseID, f.Conversation} {
		if id != "" {
			ids = append(ids, id)
		}
	}
	return append(append(ids, f.Items...), f.Objects...)
}

// Lists implements provider.Keeper.
func (Provider) Lists(method, path string) (time.Duration, bool) {
	return collections.Lists(method, spelled(path))
}

// Removed implements provider.Keeper.
func (Provider) Removed(method, path string) string {
	return collections.Removed(method, spelled(path))
}

// response is the part of an answer that names a stored response.
type response struct {
	ID     text  `json:"id"`
	Object text  `json:"object"`
	Store  *bool `json:"store"`
	Output []struct {
		ID text `json:"id"`
	} `json:"output"`
}

// made: xAI stores responses unless told not to, as OpenAI does.
func (r response) made(f body.Facts) []provider.Object {
	if r.ID == "" || (r.Object != "response" && r.Object != "") || f.Unstored || (r.Store != nil && !*r.Store) {
		return nil
	}
	made := []provider.Object{{ID: string(r.ID), Keep: provider.Stored}}
	for n, item := range r.Output {
		made = append(made, provider.StoredItem(n, string(item.ID))...)
	}
	return made
}

// EventMade implements provider.Keeper.
func (Provider) EventMade(f body.Facts, name string, data []byte) []provider.Object {
	unnamed := name == "" || name == "message"
	if name == "response.output_item.added" || unnamed && bytes.Contains(data, []byte(`"response.output_item.added"`)) {
		return provider.StreamedItem(f, data)
	}
	if name != "response.created" && !(unnamed && bytes.Contains(data, []byte(`"response.created"`))) {
		return nil
	}
	var event struct {
		Response response `json:"response"`
	}
	_ = json.Unmarshal(data, &event) // what cannot be read names no object
	return event.Response.made(f)
}

// BodyMade implements provider.Keeper. A chat that is deferred, and a video, are fetched
// later by the request_id that they are answered with.
func (Provider) BodyMade(method, path string, f body.Facts, data []byte) []provider.Object {
	if method == http.MethodPost {
		switch {
		case path == responses:
			var r response
			_ = json.Unmarshal(data, &r)
			return r.made(f)
		case path == chat, below(path, "/v1/videos"):
			return deferred(data)
		}
	}
	return collections.Made(method, spelled(path), data, []string{"id", "file_id", "batch_id", "collection_id", "voice_id"}, []string{"output_file_id", "error_file_id"})
}

func deferred(data []byte) []provider.Object {
	if !bytes.Contains(data, []byte(`"request_id"`)) {
		return nil
	}
	var d struct {
		ID text `json:"request_id"`
	}
	if _ = json.Unmarshal(data, &d); d.ID == "" {
		return nil
	}
	return []provider.Object{{ID: string(d.ID), Keep: provider.Stored}}
}
