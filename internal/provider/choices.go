package provider

import (
	"bytes"
	"encoding/json"
)

// Choices follows the choices of a stream of Chat Completions, or of the older completions.
// Its zero value is at the beginning of one.
type Choices struct {
	open  map[int]bool // false for a choice that has its finish reason
	first bool         // choice 0 is known
}

var (
	firstChoice  = []byte(`"choices":[{"index":0,`)
	finishReason = []byte(`"finish_reason"`)
	noReason     = []byte(`:null`)
)

// Read takes in what an event says of choices.
func (c *Choices) Read(data []byte) {
	if c.first && bytes.Contains(data, firstChoice) && !mayFinish(data) {
		return // one of many chunks
	}
	var chunk struct {
		Choices []struct {
			Index  int             `json:"index"`
			Reason json.RawMessage `json:"finish_reason"`
		} `json:"choices"`
	}
	_ = json.Unmarshal(data, &chunk) // what cannot be read says nothing
	for _, choice := range chunk.Choices {
		if c.open == nil {
			c.open = map[int]bool{}
		}
		c.first = c.first || choice.Index == 0
		if reason := len(choice.Reason) > 2 && choice.Reason[0] == '"'; reason || !c.known(choice.Index) {
			c.open[choice.Index] = !reason
		}
	}
}

func (c *Choices) known(index int) bool {
	_, known := c.open[index]
	return known
}

// Finished reports whether there were choices, and each has its finish reason.
func (c *Choices) Finished() bool {
	for _, open := range c.open {
		if open {
			return false
		}
	}
	return len(c.open) > 0
}

// mayFinish reports whether a chunk may have a finish reason. In a text the name would have
// backslashes before its quotes.
func mayFinish(data []byte) bool {
	_, rest, found := bytes.Cut(data, finishReason)
	return found && (!bytes.HasPrefix(rest, noReason) || bytes.Contains(rest, finishReason))
}
