package openai

import (
	"bytes"
	"encoding/json"
	"strconv"

	"holdfast/internal/provider"
)

// tokens is a count that may be missing, null, or something that is no count.
type tokens struct {
	n    int64
	told bool
}

func (t *tokens) UnmarshalJSON(b []byte) error {
	if n, err := strconv.ParseInt(string(b), 10, 64); err == nil && n >= 0 {
		*t = tokens{n, true}
	}
	return nil
}

// or is the first of the two that was told.
func (t tokens) or(other tokens) tokens {
	if t.told {
		return t
	}
	return other
}

// details splits a prompt's total.
type details struct {
	Cached     tokens `json:"cached_tokens"`
	CacheWrite tokens `json:"cache_write_tokens"`
}

// usage is OpenAI's usage object, in the words of the Responses API and in those of Chat
// Completions. Cached and written tokens are parts of the prompt's total, reasoning tokens
// of the output's.
type usage struct {
	Input         tokens  `json:"input_tokens"`
	InputDetails  details `json:"input_tokens_details"`
	Output        tokens  `json:"output_tokens"`
	Prompt        tokens  `json:"prompt_tokens"`
	PromptDetails details `json:"prompt_tokens_details"`
	Completion    tokens  `json:"completion_tokens"`
}

// into puts what was told into total. The object comes whole, so a prompt without details
// was all uncached.
func (u usage) into(total *provider.Usage) {
	if prompt := u.Input.or(u.Prompt); prompt.told {
		read := min(u.InputDetails.Cached.or(u.PromptDetails.Cached).n, prompt.n)
		write := min(u.InputDetails.CacheWrite.or(u.PromptDetails.CacheWrite).n, prompt.n-read)
		total.Input, total.CacheRead, total.CacheWrite = prompt.n-read-write, read, write
	}
	if output := u.Output.or(u.Completion); output.told {
		total.Output = output.n
	}
}

// answered is what usage needs of a response, a completion, or a chunk of one.
type answered struct {
	Model text  `json:"model"`
	Usage usage `json:"usage"`
}

func (a answered) into(u *provider.Usage) {
	if a.Model != "" {
		u.Model = string(a.Model)
	}
	a.Usage.into(u)
}

// EventUsage implements provider.Provider. A Responses stream tells the model at its head
// and the usage at its end; one that was cut tells no usage. A Chat Completions stream
// tells it only where the client asked for it, in the last chunk.
func (Provider) EventUsage(u *provider.Usage, name string, data []byte) {
	if name == "" || name == "message" {
		if u.Model != "" && !bytes.Contains(data, []byte("usage")) {
			return // one of many chunks
		}
		if name = eventType(data); name == "" {
			var a answered
			_ = json.Unmarshal(data, &a) // fields that could not be read stay untold
			a.into(u)
			return
		}
	}
	switch name {
	case "response.created", "response.completed", "response.incomplete", "response.failed":
		var event struct {
			Response answered `json:"response"`
		}
		_ = json.Unmarshal(data, &event)
		event.Response.into(u)
	}
}

// BodyUsage implements provider.Provider.
func (Provider) BodyUsage(b []byte) provider.Usage {
	var a answered
	var u provider.Usage
	_ = json.Unmarshal(b, &a)
	a.into(&u)
	return u
}
