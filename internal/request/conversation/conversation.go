// Package conversation says which conversation a request belongs to.
//
// # What it decides
//
// Identify makes a key of the first of these that a request has: the owner's own word for
// it in X-Holdfast-Conversation; the session that its provider's package found; the
// body's prompt_cache_key; a fingerprint of what stays the same over a conversation's
// turns (tools, system text without volatile lines, first user text). A session that was
// found in metadata.user_id yields to a prompt_cache_key. A request with none of them
// belongs to no conversation.
//
// # Words
//
// A name is what someone called the conversation: a session id, a prompt_cache_key, the
// owner's own word. A name gives the same key wherever it was found; UUIDs are the same
// name in either case, and blank space is not a name. A fingerprint never equals a name.
//
// A sub-agent, an agent within a session, is a conversation of its own; its parent is
// its session's.
//
// A key is a hash over all of that, the client key and the provider, so that two clients,
// or two providers, never share a conversation, and what is stored tells no ids.
//
// # What it never does
//
// It takes no part of the key from addresses, user agents, credentials or ids of single
// requests. It does not know who owns state that lives on one account (a file, a batch, a
// stored response); that comes before any key, and the gateway asks the store for it. It
// does no I/O.
package conversation

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strings"

	"holdfast/internal/core/account"
	"holdfast/internal/provider"
	"holdfast/internal/wire/body"
)

// Where a key was found; for a session it is the provider's word, as in provider.Request.
const (
	Explicit       = "explicit"
	PromptCacheKey = "prompt_cache_key"
	UserID         = "metadata.user_id"
	Object         = "object"  // the owner of an object decides, which comes before any key
	Session        = "session" // a session whose finder did not say where
	Fingerprint    = "fingerprint"
	None           = "none"
)

// Identity says which conversation a request belongs to.
type Identity struct {
	// Key is the conversation's: 43 characters that are safe in paths, or empty.
	Key string
	// Parent is the key of the session that a sub-agent works for; empty otherwise.
	Parent string
	// Source is where the key was found: one of a small set of words, for the metric.
	Source string
}

// Identify says which conversation a request belongs to. The explicit name is the value
// of its X-Holdfast-Conversation header, or empty; it may be as long as a header may be.
func Identify(clientKeyID string, p account.Provider, explicit string, r provider.Request, f body.Facts) Identity {
	space := namespace{clientKeyID, string(p)}
	session, cacheKey := name(r.Session), name(f.PromptCacheKey)
	if r.Source == UserID && cacheKey != "" {
		session = ""
	}
	switch {
	case name(explicit) != "":
		return Identity{Key: space.key("name", name(explicit)), Source: Explicit}
	case session != "":
		id := Identity{Key: space.key("name", session), Source: r.Source}
		if id.Source == "" {
			id.Source = Session
		}
		if agent := name(r.Agent); agent != "" {
			id.Parent, id.Key = id.Key, space.key("agent", session, agent)
		}
		return id
	case cacheKey != "":
		return Identity{Key: space.key("name", cacheKey), Source: PromptCacheKey}
	case strings.TrimSpace(f.FirstUser) != "":
		return Identity{Key: space.key("fingerprint", string(f.ToolsHash[:]), string(f.SystemHash[:]), f.FirstUser), Source: Fingerprint}
	}
	return Identity{Source: None}
}

// name makes one spelling of a name; empty is no name.
func name(text string) string {
	text = strings.TrimSpace(text)
	if provider.IsUUID(text) {
		return strings.ToLower(text)
	}
	return text
}

// namespace is who speaks and to whom.
type namespace struct{ clientKeyID, provider string }

// key hashes parts of a kind. Each part goes in with its length, so that none can pass
// for the end of one and the beginning of the next.
func (n namespace) key(kind string, parts ...string) string {
	b := make([]byte, 0, 512)
	for _, part := range [...]string{"holdfast conversation", n.clientKeyID, n.provider, kind} {
		b = appendPart(b, part)
	}
	for _, part := range parts {
		b = appendPart(b, part)
	}
	sum := sha256.Sum256(b)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

func appendPart(b []byte, part string) []byte {
	b = binary.AppendUvarint(b, uint64(len(part)))
	return append(b, part...)
}
