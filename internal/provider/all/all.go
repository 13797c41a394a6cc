// Package all lists the providers that there are. It is the one place that knows each of their
// packages; programs and tests take its list, and everything else takes a
// provider.Provider. A new provider is a line here.
//
// It decides nothing and holds nothing.
package all

import (
	"holdfast/internal/core/account"
	"holdfast/internal/provider"
	"holdfast/internal/provider/anthropic"
	"holdfast/internal/provider/openai"
	"holdfast/internal/provider/xai"
)

// Providers are all providers by their names. The map is the caller's own.
func Providers() map[account.Provider]provider.Provider {
	return map[account.Provider]provider.Provider{
		account.Anthropic: anthropic.Provider{},
		account.OpenAI:    openai.Provider{},
		account.XAI:       xai.Provider{},
	}
}
