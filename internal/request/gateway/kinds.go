package gateway

import (
	"regexp"
	"slices"
	"strings"
)

// prefixed is how an id begins that tells by itself what it is of.
var prefixed = regexp.MustCompile(`^([a-z]{2,16})[-_].`)

// kinds are what ids are of, by their prefix, as the providers' API references have them
// (2026-12-01).
var kinds = map[string]string{
	"file": "a file", "resp": "a response", "conv": "a conversation", "batch": "a batch", "msgbatch": "a batch",
	"vs": "a vector store", "container": "a container", "cntr": "a container", "asst": "an assistant", "thread": "a thread",
	"run": "a run", "upload": "an upload", "ftjob": "a tuning job", "chatcmpl": "a stored chat", "video": "a video", "eval": "an evaluation",
	"skill": "a skill", "agent": "an agent", "sesn": "a session", "sess": "a session", "env": "an environment",
	"msg": "an item of a response", "rs": "an item of a response", "fc": "an item of a response",
}

// kindOf says what an id is of, by its beginning or by its place in the path, and nothing more
// of the id: what a client sends in its place may be a secret.
func kindOf(id, path string) string {
	if strings.HasPrefix(id, "ft:") {
		return "a tuned model (ft:…)"
	}
	before, _, inPath := strings.Cut(path, "/"+id)
	if prefix := prefixed.FindStringSubmatch(id); prefix != nil && (inPath || kinds[prefix[1]] != "") {
		what := kinds[prefix[1]]
		if what == "" {
			what = "an object"
		}
		return what + " (" + prefix[0][:len(prefix[1])+1] + "…)"
	}
	if inPath {
		return "an object of " + before
	}
	return "an object, or where a listing goes on"
}

// kindsOf are the kinds of the named objects that are meant, each once, for a sentence.
func (x *exchange) kindsOf(meant func(named) bool) string {
	var words []string
	for _, n := range x.named {
		if meant(n) && !slices.Contains(words, n.kind) {
			words = append(words, n.kind)
		}
	}
	if len(words) > mostKinds {
		words = append(words[:mostKinds], "and others")
	}
	return strings.Join(words, ", ")
}

const mostKinds = 3
