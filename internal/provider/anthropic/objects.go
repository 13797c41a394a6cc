package anthropic

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"

	"holdfast/internal/body"
	"holdfast/internal/provider"
)

// collections are what can be named in a path. The results of a batch are there for 29
// days, files and skills until they are deleted.
var collections = provider.Collections{
	{Path: batches, Keep: provider.Stored},
	{Path: files, Keep: provider.Lasting},
	{Path: skills, Keep: provider.Lasting},
}

// Names implements provider.Keeper.
func (Provider) Names(path string, f body.Facts) []string {
	id := collections.Named(path)
	if id == "" {
		return f.Objects
	}
	return append([]string{id}, f.Objects...)
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

// tells reports whether an event or an answer can tell of an object.
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
	_ = json.Unmarshal(data, &event) // what cannot be read tells of nothing
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
	return collections.Made(method, path, data, []string{"id"}, nil)
}
