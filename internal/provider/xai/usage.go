package xai

import (
	"bytes"
	"encoding/json"

	"holdfast/internal/provider"
	"holdfast/internal/provider/dialect"
)

// usage is xAI's usage object in its three spellings. num_sources_used, the counts of
// server-side tools and context_details (the context's size after internal rounds, which
// the totals sum up) are no tokens that were consumed.
type usage struct {
	// Chat Completions
	Prompt        tokens `json:"prompt_tokens"`
	Completion    tokens `json:"completion_tokens"`
	Total         tokens `json:"total_tokens"`
	PromptDetails struct {
		Cached tokens `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		Reasoning tokens `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`

	// Responses; Messages shares the first and the last
	Input        tokens `json:"input_tokens"`
	InputDetails struct {
		Cached tokens `json:"cached_tokens"`
	} `json:"input_tokens_details"`
	Output        tokens `json:"output_tokens"`
	OutputDetails struct {
		Reasoning tokens `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`

	// Messages, whose input_tokens are what is left beside these
	CacheRead  tokens `json:"cache_read_input_tokens"`
	CacheWrite tokens `json:"cache_creation_input_tokens"`
}

// into keeps the last told value of each field: they are cumulative.
func (u usage) into(total *provider.Usage) {
	switch {
	case u.Prompt.Told:
		total.Input, total.CacheRead = split(u.Prompt.N, u.PromptDetails.Cached.N)
	case u.Input.Told:
		if u.InputDetails.Cached.Told || !u.CacheRead.Told {
			total.Input, total.CacheRead = split(u.Input.N, u.InputDetails.Cached.N)
		} else {
			total.Input = u.Input.N
		}
	}
	if u.CacheRead.Told && !u.InputDetails.Cached.Told {
		total.CacheRead = u.CacheRead.N
	}
	if u.CacheWrite.Told {
		total.CacheWrite = u.CacheWrite.N
	}
	switch {
	case u.Completion.Told:
		total.Output = u.completion()
		total.Reasoning = min(u.CompletionDetails.Reasoning.N, total.Output)
	case u.Output.Told:
		total.Output = u.Output.N
		total.Reasoning = min(u.OutputDetails.Reasoning.N, total.Output)
	}
}

// split parts a prompt into what was computed and what the cache gave. A cache cannot
// have given more than the prompt.
func split(prompt, cached int64) (input, read int64) {
	read = min(cached, prompt)
	return prompt - read, read
}

// completion is the output of a chat. xAI has counted reasoning beside completion_tokens
// as well as within it; the total says which.
func (u usage) completion() int64 {
	if out := u.Total.N - u.Prompt.N; u.Total.Told && u.Prompt.Told && out-u.Completion.N == u.CompletionDetails.Reasoning.N {
		return out
	}
	return u.Completion.N
}

// holder is what usage needs of an answer, a chunk or an event.
type holder struct {
	Model text   `json:"model"`
	Usage *usage `json:"usage"`
}

func (m holder) into(u *provider.Usage) {
	if m.Model != "" {
		u.Model = string(m.Model)
	}
	if m.Usage != nil {
		m.Usage.into(u)
	}
}

// EventUsage implements provider.Provider. A Responses stream tells usage with its last
// event, a Chat Completions stream with its last chunk or with every one; Messages tell
// the prompt with message_start and the rest with message_delta. Tokens inside an item or
// a delta belong to the model's text, and are not read.
func (Provider) EventUsage(u *provider.Usage, name string, data []byte) {
	if !bytes.Contains(data, []byte(`"usage"`)) && (u.Model != "" || !bytes.Contains(data, []byte(`"model"`))) {
		return // most events, and every chunk but the first and the last
	}
	if name == "" || name == "message" {
		name = dialect.EventType(data)
	}
	switch name {
	case "", "message_delta": // a chunk of Chat Completions, or what has the same place for it
		var m holder
		_ = json.Unmarshal(data, &m) // fields that could not be read stay untold
		m.into(u)
	case "response.created", "response.in_progress", "response.completed", "response.incomplete", "response.failed", "response.cancelled", "response.done":
		var event struct {
			Response holder `json:"response"`
		}
		_ = json.Unmarshal(data, &event)
		event.Response.into(u)
	case "message_start":
		var event struct {
			Message holder `json:"message"`
		}
		_ = json.Unmarshal(data, &event)
		event.Message.into(u)
	}
}

// BodyUsage implements provider.Provider.
func (Provider) BodyUsage(b []byte) provider.Usage {
	var m holder
	var u provider.Usage
	_ = json.Unmarshal(b, &m)
	m.into(&u)
	return u
}
