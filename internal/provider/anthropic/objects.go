package anthropic

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"holdfast/internal/provider"
	"holdfast/internal/wire/body"
)

// collections are what can be named in a path, as the SDKs have it (TypeScript 1.14.0, Go
// 1.84.0, Python 2.14.0, which name the same; 2026-12-01). The results of a batch are there
// for 29 days, all else until it is deleted. What is below /v1/organizations and
// /v1/compliance takes no ordinary credential and is not served.
var collections = provider.Collections{
	{Path: batches, Keep: provider.Stored},
	{Path: files, Keep: provider.Lasting},
	// Skills without the prefix, such as pptx, are Anthropic's own and on every account.
	{Path: skills, Keep: provider.Lasting, Prefix: "skill_"},
	{Path: "/v1/agents", Keep: provider.Lasting},
	{Path: "/v1/deployment_runs", Keep: provider.Lasting},
	{Path: "/v1/deployments", Keep: provider.Lasting, Makes: []string{"run"}},
	{Path: "/v1/dreams", Keep: provider.Lasting},
	{Path: "/v1/environments", Keep: provider.Lasting},
	{Path: "/v1/memory_stores", Keep: provider.Lasting},
	{Path: "/v1/sessions", Keep: provider.Lasting},
	{Path: "/v1/tunnels", Keep: provider.Lasting},
	{Path: "/v1/user_profiles", Keep: provider.Lasting},
	{Path: "/v1/vaults", Keep: provider.Lasting},
}

// params are the members of a query that name an object whose listing they narrow (the same
// SDKs).
var params = []string{"agent_id", "deployment_id", "ids", "ids[]", "memory_store_id", "scope_id"}

// materials are the collections of what one later request names several of.
var materials = []string{files, skills, "/v1/agents", "/v1/environments", "/v1/memory_stores", "/v1/vaults"}

// Names implements provider.Keeper.
func (Provider) Names(path, query string, f body.Facts) []string {
	ids := collections.Named(path, query, params...)
	if collections.Has(path) && !below(path, batches) { // a batch is requests to a model
		ids = append(ids, f.Parts...)
	}
	if len(ids) == 0 {
		return f.Objects
	}
	return append(ids, f.Objects...)
}

// profileHeader names the user profile that a request is made for (the same SDKs). Every
// account has profiles of its own.
const profileHeader = "Anthropic-User-Profile-Id"

// HeadNames implements provider.HeadNamer.
func (Provider) HeadNames(h http.Header) []string {
	if id := h.Get(profileHeader); id != "" {
		return []string{id}
	}
	return nil
}

// Lists implements provider.Keeper.
func (Provider) Lists(method, path string) (time.Duration, bool) {
	return collections.Lists(method, path)
}

// Removed implements provider.Keeper.
func (Provider) Removed(method, path string) string { return collections.Removed(method, path) }

// identified is an object by its id.
type identified struct {
	ID text `json:"id"`
}

// containers end thirty days after they were made.
func (c identified) container() []provider.Object {
	if c.ID == "" {
		return nil
	}
	return []provider.Object{{ID: string(c.ID), Keep: provider.Stored}}
}

// block is a content block, as far as it may be the result of code that the server ran;
// files which the code made are then named in it. What a model writes for a client's own
// tool is no word of the provider's and is not looked at.
type block struct {
	Type    text            `json:"type"`
	Content json.RawMessage `json:"content"`
}

func (b block) files() []provider.Object {
	if !strings.HasSuffix(string(b.Type), "code_execution_tool_result") {
		return nil
	}
	var result struct {
		Content []struct {
			File text `json:"file_id"`
		} `json:"content"`
	}
	_ = json.Unmarshal(b.Content, &result) // an error of the tool has no files
	var made []provider.Object
	for _, output := range result.Content {
		if output.File != "" {
			made = append(made, provider.Object{ID: string(output.File), Keep: provider.Lasting})
		}
	}
	return made
}

// tells reports whether an event or an answer can name an object.
func tells(data []byte) bool {
	return bytes.Contains(data, []byte(`"container"`)) || bytes.Contains(data, []byte(`"file_id"`))
}

// EventMade implements provider.Keeper. A message makes no object of itself; the code that
// it ran has a container, and may have made files.
func (Provider) EventMade(_ body.Facts, name string, data []byte) []provider.Object {
	if name == "content_block_delta" || !tells(data) { // nearly every event
		return nil
	}
	var event struct {
		Message struct {
			Container identified `json:"container"`
		} `json:"message"`
		Delta struct {
			Container identified `json:"container"`
		} `json:"delta"`
		Block block `json:"content_block"`
	}
	_ = json.Unmarshal(data, &event) // what cannot be read names no object
	made := event.Message.Container.container()
	made = append(made, event.Delta.Container.container()...)
	return append(made, event.Block.files()...)
}

// BodyMade implements provider.Keeper.
func (Provider) BodyMade(method, path string, _ body.Facts, data []byte) []provider.Object {
	if method == http.MethodPost && path == messages {
		if !tells(data) {
			return nil
		}
		var m struct {
			Container identified `json:"container"`
			Content   []block    `json:"content"`
		}
		_ = json.Unmarshal(data, &m)
		made := m.Container.container()
		for _, b := range m.Content {
			made = append(made, b.files()...)
		}
		return made
	}
	return collections.Made(method, path, data, []string{"id"}, []string{"session_id", "environment_id"})
}

// Links implements provider.Linker. The SDKs for Python (2.14.0) and TypeScript (1.14.0)
// read a batch's results at the link that the batch tells, with the secret of every other
// request; that for Go (1.84.0) asks for its path. No other link in an answer is followed so
// by them, nor by those of OpenAI and xAI: what is downloaded elsewhere has a signature of
// its own and needs no secret.
func (Provider) Links(_, path string) (member, under string) {
	if !below(path, batches) || strings.HasSuffix(path, "/results") {
		return "", ""
	}
	return "results_url", batches
}
