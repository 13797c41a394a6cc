package openai

import (
	"bytes"
	"encoding/json"

	"holdfast/internal/provider"
	"holdfast/internal/provider/dialect"
)

// details splits a prompt's total.
type details struct {
	Cached     tokens `json:"cached_tokens"`
	CacheWrite tokens `json:"cache_write_tokens"`
}

// parts splits an output's total.
type parts struct {
	Reasoning tokens `json:"reasoning_tokens"`
}

// usage is OpenAI's usage object, in the words of the Responses API and in those of Chat
// Completions. Cached and written tokens are parts of the prompt's total, reasoning tokens
// of the output's.
type usage struct {
	Input         tokens  `json:"input_tokens"`
	InputDetails  details `json:"input_tokens_details"`
	Output        tokens  `json:"output_tokens"`
	OutputParts   parts   `json:"output_tokens_details"`
	Prompt        tokens  `json:"prompt_tokens"`
	PromptDetails details `json:"prompt_tokens_details"`
	Completion    tokens  `json:"completion_tokens"`
	Completed     parts   `json:"completion_tokens_details"`
}

// into puts what was told into total. The object comes whole, so a prompt without details
// was all uncached.
func (u usage) into(total *provider.Usage) {
	if prompt := u.Input.Or(u.Prompt); prompt.Told {
		read := min(u.InputDetails.Cached.Or(u.PromptDetails.Cached).N, prompt.N)
		write := min(u.InputDetails.CacheWrite.Or(u.PromptDetails.CacheWrite).N, prompt.N-read)
		total.Input, total.CacheRead, total.CacheWrite = prompt.N-read-write, read, write
	}
	if output := u.Output.Or(u.Completion); output.Told {
		total.Output = output.N
		total.Reasoning = min(u.OutputParts.Reasoning.Or(u.Completed.Reasoning).N, output.N)
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
		if name = dialect.EventType(data); name == "" {
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
