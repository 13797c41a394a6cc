package simulate

import "encoding/json"

// Response is a good answer to POST /v1/responses, in the dialect that OpenAI and xAI
// share.
type Response struct {
	ID, Model string
	// CreatedAt is in Unix seconds.
	CreatedAt int64
	// Encrypted is reasoning that only the account it was made by can read; empty: the
	// answer has none.
	Encrypted string
	Text      string
	Usage     Usage
}

type wireResponse struct {
	ID                string         `json:"id"`
	Object            string         `json:"object"`
	CreatedAt         int64          `json:"created_at"`
	Status            string         `json:"status"`
	Background        bool           `json:"background"`
	Error             *struct{}      `json:"error"`
	IncompleteDetails *struct{}      `json:"incomplete_details"`
	Instructions      *string        `json:"instructions"`
	Model             string         `json:"model"`
	Output            []any          `json:"output"`
	ParallelToolCalls bool           `json:"parallel_tool_calls"`
	Store             bool           `json:"store"`
	ToolChoice        string         `json:"tool_choice"`
	Tools             []any          `json:"tools"`
	Usage             *wireTokens    `json:"usage"`
	Metadata          map[string]any `json:"metadata"`
}

// wireTokens is the usage of a response: the whole prompt, of which the cache gave a part.
type wireTokens struct {
	Input        int64 `json:"input_tokens"`
	InputDetails struct {
		Cached int64 `json:"cached_tokens"`
		Write  int64 `json:"cache_write_tokens"`
	} `json:"input_tokens_details"`
	Output        int64 `json:"output_tokens"`
	OutputDetails struct {
		Reasoning int64 `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
	Total int64 `json:"total_tokens"`
}

type wireReasoning struct {
	ID        string `json:"id"`
	Type      string `json:"type"`
	Summary   []any  `json:"summary"`
	Encrypted string `json:"encrypted_content"`
}

type wireOutput struct {
	ID      string     `json:"id"`
	Type    string     `json:"type"`
	Status  string     `json:"status"`
	Role    string     `json:"role"`
	Content []wireText `json:"content"`
}

type wireText struct {
	Type        string `json:"type"`
	Text        string `json:"text"`
	Annotations []any  `json:"annotations"`
	Logprobs    []any  `json:"logprobs"`
}

func (u Usage) tokens() *wireTokens {
	prompt := u.Input + u.CacheWrite + u.CacheRead
	w := &wireTokens{Input: prompt, Output: u.Output, Total: prompt + u.Output}
	w.InputDetails.Cached, w.InputDetails.Write = u.CacheRead, u.CacheWrite
	return w
}

func (r Response) wire(status string) wireResponse {
	return wireResponse{
		ID: r.ID, Object: "response", CreatedAt: r.CreatedAt, Status: status, Model: r.Model, Output: []any{},
		ParallelToolCalls: true, ToolChoice: "auto", Tools: []any{}, Metadata: map[string]any{},
	}
}

func (r Response) reasoning() wireReasoning {
	return wireReasoning{ID: "rs_" + r.ID, Type: "reasoning", Summary: []any{}, Encrypted: r.Encrypted}
}

func (r Response) message(status string, content ...wireText) wireOutput {
	if content == nil {
		content = []wireText{}
	}
	return wireOutput{ID: "msg_" + r.ID, Type: "message", Status: status, Role: "assistant", Content: content}
}

func outputText(text string) wireText {
	return wireText{Type: "output_text", Text: text, Annotations: []any{}, Logprobs: []any{}}
}

// whole is the response when it is complete.
func (r Response) whole() wireResponse {
	w := r.wire("completed")
	w.Usage = r.Usage.tokens()
	if r.Encrypted != "" {
		w.Output = append(w.Output, r.reasoning())
	}
	w.Output = append(w.Output, r.message("completed", outputText(r.Text)))
	return w
}

// JSON renders the response whole.
func (r Response) JSON() []byte { return encode(r.whole()) }

// Events renders the response as a stream: response.created, response.in_progress, each
// item from its output_item.added to its output_item.done with the text's deltas between,
// response.completed with the usage.
func (r Response) Events() []Event {
	var events []Event
	add := func(name string, more map[string]any) {
		more["type"], more["sequence_number"] = name, len(events)
		events = append(events, event(name, more))
	}
	begun := r.wire("in_progress")
	add("response.created", map[string]any{"response": begun})
	add("response.in_progress", map[string]any{"response": begun})
	at := 0
	if r.Encrypted != "" {
		opening := r.reasoning()
		opening.Encrypted = ""
		add("response.output_item.added", map[string]any{"output_index": at, "item": opening})
		add("response.output_item.done", map[string]any{"output_index": at, "item": r.reasoning()})
		at++
	}
	place := func(more map[string]any) map[string]any {
		more["item_id"], more["output_index"], more["content_index"] = "msg_"+r.ID, at, 0
		return more
	}
	add("response.output_item.added", map[string]any{"output_index": at, "item": r.message("in_progress")})
	add("response.content_part.added", place(map[string]any{"part": outputText("")}))
	for _, piece := range pieces(r.Text) {
		add("response.output_text.delta", place(map[string]any{"delta": piece, "logprobs": []any{}}))
	}
	add("response.output_text.done", place(map[string]any{"text": r.Text, "logprobs": []any{}}))
	add("response.content_part.done", place(map[string]any{"part": outputText(r.Text)}))
	add("response.output_item.done", map[string]any{"output_index": at, "item": r.message("completed", outputText(r.Text))})
	add("response.completed", map[string]any{"response": r.whole()})
	return events
}

// Completion is a good answer to POST /v1/chat/completions.
type Completion struct {
	ID, Model string
	// CreatedAt is in Unix seconds.
	CreatedAt int64
	Text      string
	Usage     Usage
}

type wireCompletion struct {
	ID      string          `json:"id"`
	Object  string          `json:"object"`
	Created int64           `json:"created"`
	Model   string          `json:"model"`
	Choices []wireChoice    `json:"choices"`
	Usage   *wireChatTokens `json:"usage,omitempty"`
}

type wireChoice struct {
	Index        int             `json:"index"`
	Message      json.RawMessage `json:"message,omitempty"`
	Delta        json.RawMessage `json:"delta,omitempty"`
	Logprobs     *struct{}       `json:"logprobs"`
	FinishReason *string         `json:"finish_reason"`
}

type wireChatTokens struct {
	Prompt        int64 `json:"prompt_tokens"`
	Completion    int64 `json:"completion_tokens"`
	Total         int64 `json:"total_tokens"`
	PromptDetails struct {
		Cached int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

func (c Completion) tokens() *wireChatTokens {
	prompt := c.Usage.Input + c.Usage.CacheWrite + c.Usage.CacheRead
	w := &wireChatTokens{Prompt: prompt, Completion: c.Usage.Output, Total: prompt + c.Usage.Output}
	w.PromptDetails.Cached = c.Usage.CacheRead
	return w
}

// JSON renders the completion whole.
func (c Completion) JSON() []byte {
	stop := "stop"
	return encode(wireCompletion{
		ID: c.ID, Object: "chat.completion", Created: c.CreatedAt, Model: c.Model, Usage: c.tokens(),
		Choices: []wireChoice{{
			Message:      encode(map[string]any{"role": "assistant", "content": c.Text, "refusal": nil}),
			FinishReason: &stop,
		}},
	})
}

// done ends a stream of chunks.
const done = "[DONE]"

// Events renders the completion as a stream of chunks without names, ended by [DONE].
// withUsage adds the chunk of the usage, which is sent only to who asks for it.
func (c Completion) Events(withUsage bool) []Event {
	chunk := func(choices ...wireChoice) wireCompletion {
		if choices == nil {
			choices = []wireChoice{}
		}
		return wireCompletion{ID: c.ID, Object: "chat.completion.chunk", Created: c.CreatedAt, Model: c.Model, Choices: choices}
	}
	delta := func(content map[string]any, finish *string) Event {
		return Event{Data: encode(chunk(wireChoice{Delta: encode(content), FinishReason: finish}))}
	}
	events := []Event{delta(map[string]any{"role": "assistant", "content": ""}, nil)}
	for _, piece := range pieces(c.Text) {
		events = append(events, delta(map[string]any{"content": piece}, nil))
	}
	stop := "stop"
	events = append(events, delta(map[string]any{}, &stop))
	if withUsage {
		last := chunk()
		last.Usage = c.tokens()
		events = append(events, Event{Data: encode(last)})
	}
	return append(events, Event{Data: []byte(done)})
}

// ErrorBody is a refusal in OpenAI's envelope. More are further fields of the error, such
// as resets_at.
func ErrorBody(kind, code, message string, more map[string]any) []byte {
	inner := map[string]any{"message": message, "type": kind, "param": nil, "code": nil}
	if code != "" {
		inner["code"] = code
	}
	for name, value := range more {
		inner[name] = value
	}
	return encode(map[string]any{"error": inner})
}
