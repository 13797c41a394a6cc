package body_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"holdfast/internal/wire/body"
)

// reference says the same as body.Inspect, slowly, by encoding/json. The body is valid.
func reference(data []byte) body.Facts {
	root := members(data)
	turns := elements(root["messages"])
	if turns == nil {
		turns = elements(root["input"])
	}
	f := body.Facts{
		Model:              id(root["model"]),
		ModelUnread:        modelUnread(data),
		Stream:             string(root["stream"]) == "true",
		UserID:             id(members(root["metadata"])["user_id"]),
		PromptCacheKey:     id(root["prompt_cache_key"]),
		ServiceTier:        id(root["service_tier"]),
		PreviousResponseID: id(root["previous_response_id"]),
		Conversation:       id(root["conversation"]),
		SessionID:          id(members(root["client_metadata"])["session_id"]),
		Encrypted:          hasMember(data, encryptedContent),
		Stored:             string(root["store"]) == "true",
		Unstored:           string(root["store"]) == "false",
		Messages:           len(turns),
		ToolsEmpty:         root["tools"] != nil && elements(root["tools"]) != nil && len(elements(root["tools"])) == 0,
	}
	hasMember(data, func(name string, raw json.RawMessage) bool {
		for _, id := range objectIDs(objectMembers, name, raw) {
			if !slices.Contains(f.Objects, id) && len(f.Objects) < 16 {
				f.Objects = append(f.Objects, id)
			}
		}
		return false
	})
	f.Parts = parts(data)
	for _, element := range elements(root["input"]) {
		if id := storedItem(element); id != "" && !slices.Contains(f.Items, id) && len(f.Items) < 8 {
			f.Items = append(f.Items, id)
		}
	}
	if f.Conversation == "" {
		f.Conversation = id(members(root["conversation"])["id"])
	}
	if json.Unmarshal(root["max_tokens"], &f.MaxTokens) != nil {
		f.MaxTokens = 0
	}
	schema := members(members(members(root["output_config"])["format"])["schema"])
	_, f.OutputTitle = members(schema["properties"])["title"]

	system := slices.Concat(texts(root["system"]), texts(root["instructions"]))
	leading := true
	for i, turn := range turns {
		role, _ := str(members(turn)["role"])
		kind, _ := str(members(turn)["type"])
		ofModel := role == "assistant" || slices.Contains([]string{"reasoning", "function_call", "custom_tool_call"}, kind)
		f.Answered = f.Answered || (i < 16 && ofModel)
		content := texts(members(turn)["content"])
		if role == "system" || role == "developer" {
			if leading {
				system = append(system, content...)
			}
			continue
		}
		leading = false
		if role == "user" && f.FirstUser == "" {
			f.FirstUser = userText(content)
		}
	}
	if input, ok := str(root["input"]); ok && elements(root["messages"]) == nil {
		f.FirstUser = userText([]string{input})
	}
	f.SystemHash = hashLines(system)
	f.ToolsHash = hashTools(elements(root["tools"]))
	return f
}

// modelUnread reports whether the model that an object names cannot be told.
func modelUnread(object []byte) bool {
	d, last := json.NewDecoder(bytes.NewReader(object)), json.RawMessage(nil)
	_, _ = d.Token()
	misspelled := false
	for d.More() {
		name, _ := d.Token()
		var value json.RawMessage
		_ = d.Decode(&value)
		if name != "model" {
			text, _ := name.(string)
			misspelled = misspelled || strings.EqualFold(text, "model")
			continue
		}
		text, isText := str(value)
		if isNull := string(value) == "null"; !isText && !isNull || len(text) > 2048 || len(last) > 0 && !bytes.Equal(last, value) {
			return true
		}
		if last = nil; isText {
			last = value
		}
	}
	text, _ := str(last)
	return misspelled && text == ""
}

// members are those of an object, or nil.
func members(raw json.RawMessage) map[string]json.RawMessage {
	var m map[string]json.RawMessage
	if len(raw) == 0 || json.Unmarshal(raw, &m) != nil {
		return nil
	}
	return m
}

// elements are those of an array, or nil; not nil for an empty one.
func elements(raw json.RawMessage) []json.RawMessage {
	var e []json.RawMessage
	if len(raw) == 0 || json.Unmarshal(raw, &e) != nil {
		return nil
	}
	return e
}

func str(raw json.RawMessage) (string, bool) {
	var s *string
	if len(raw) == 0 || json.Unmarshal(raw, &s) != nil || s == nil {
		return "", false
	}
	return *s, true
}

func id(raw json.RawMessage) string {
	s, _ := str(raw)
	if len(s) > 2048 {
		return ""
	}
	return s
}

func texts(content json.RawMessage) []string {
	if s, ok := str(content); ok {
		return []string{s}
	}
	var all []string
	for _, part := range elements(content) {
		m := members(part)
		kind, _ := str(m["type"])
		if text, ok := str(m["text"]); ok && (kind == "text" || kind == "input_text") {
			all = append(all, text)
		}
	}
	return all
}

// firstBytes is at most n bytes of s, without cutting a character.
func firstBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

var reminder = regexp.MustCompile(`(?s)<system-reminder>.*?(</system-reminder>|$)`)

func userText(content []string) string {
	var all []string
	for _, text := range content {
		text = reminder.ReplaceAllString(firstBytes(text, 32<<10), "")
		if text = strings.TrimSpace(text); text != "" {
			all = append(all, text)
		}
	}
	return firstBytes(strings.Join(all, "\n"), 4096)
}

const calendar = `(?i:jan|janu|january|feb|febr|february|mar|marc|march|apr|apri|april|may|jun|june|jul|july|` +
	`aug|augu|august|sep|sept|september|oct|octo|october|nov|nove|november|dec|dece|december|` +
	`mon|mond|monday|tue|tues|tuesday|wed|wedn|wednesday|thu|thur|thursday|fri|frid|friday|` +
	`sat|satu|saturday|sun|sund|sunday)`

var (
	year     = regexp.MustCompile(`[0-9]{4}`)
	pair     = regexp.MustCompile(`(^|[^0-9A-Za-z])[0-9][0-9A-Za-z]*[:/-][0-9]`)
	nameDay  = regexp.MustCompile(`(^|[^0-9A-Za-z])` + calendar + `[^0-9A-Za-z]+[0-9]`)
	dayName  = regexp.MustCompile(`(^|[^0-9A-Za-z])[0-9][0-9A-Za-z]*[^0-9A-Za-z]+` + calendar + `($|[^0-9A-Za-z])`)
	hexRun   = regexp.MustCompile(`[0-9A-Fa-f]{7,}`)
	longWord = regexp.MustCompile(`[0-9A-Za-z]{16,}`)
)

func isVolatile(line string) bool {
	for _, re := range []*regexp.Regexp{year, pair, nameDay, dayName} {
		if re.MatchString(line) {
			return true
		}
	}
	for _, word := range append(hexRun.FindAllString(line, -1), longWord.FindAllString(line, -1)...) {
		if strings.ContainsAny(word, "0123456789") {
			return true
		}
	}
	return strings.HasPrefix(line, "x-anthropic-billing-header:")
}

// hashLines is for system text below the size at which it is cut.
func hashLines(system []string) [32]byte {
	var kept strings.Builder
	for i, text := range system {
		if i == 0 && strings.HasPrefix(text, "x-anthropic-billing-header:") {
			continue
		}
		for line := range strings.SplitSeq(text, "\n") {
			if line = strings.TrimSpace(line); line != "" && !isVolatile(line) {
				kept.WriteString(line + "\n")
			}
		}
	}
	if kept.Len() == 0 {
		return [32]byte{}
	}
	return sha256.Sum256([]byte(kept.String()))
}

func hashTools(tools []json.RawMessage) [32]byte {
	if len(tools) == 0 {
		return [32]byte{}
	}
	var names []string
	for _, tool := range tools {
		m := members(tool)
		name, ok := str(m["name"])
		if !ok {
			name, ok = str(members(m["function"])["name"])
		}
		if !ok {
			name, _ = str(m["type"])
		}
		names = append(names, name)
	}
	slices.Sort(names)
	var b []byte
	for _, name := range names {
		b = append(binary.AppendUvarint(b, uint64(len(name))), name...)
	}
	return sha256.Sum256(b)
}

func encryptedContent(name string, raw json.RawMessage) bool {
	s, ok := str(raw)
	return ok && s != "" && name == "encrypted_content"
}

var objectMembers = map[string]*regexp.Regexp{
	"id": containerID, "container": containerID, "container_id": containerID,
	"file_id": fileID, "input_file_id": fileID, "training_file": fileID, "validation_file": fileID, "file_ids": fileID,
	"skill_id": regexp.MustCompile(`^"skill_[A-Za-z0-9_-]+"$`), "vector_store_ids": storeID, "collection_ids": storeID,
}

var partMembers = map[string]*regexp.Regexp{
	"id": agentID, "agent": agentID, "agent_id": agentID,
	"assistant_id":    regexp.MustCompile(`^"asst_[A-Za-z0-9_-]+"$`),
	"environment_id":  regexp.MustCompile(`^"env_[A-Za-z0-9_-]+"$`),
	"memory_store_id": regexp.MustCompile(`^"memstore_[A-Za-z0-9_-]+"$`),
	"thread_id":       regexp.MustCompile(`^"thread_[A-Za-z0-9_-]+"$`),
	"vault_ids":       regexp.MustCompile(`^"vlt_[A-Za-z0-9_-]+"$`),
}

var (
	containerID = regexp.MustCompile(`^"(container_|cntr_)[A-Za-z0-9_-]+"$`)
	storeID     = regexp.MustCompile(`^"(vs_|collection_)[A-Za-z0-9_-]+"$`)
	agentID     = regexp.MustCompile(`^"agent_[A-Za-z0-9_-]+"$`)
	fileID      = regexp.MustCompile(`^"(file_|file-)[A-Za-z0-9_-]+"$`)
)

// objectIDs looks at values as they are written: ids have no escapes.
func objectIDs(members map[string]*regexp.Regexp, name string, raw json.RawMessage) []string {
	form := members[name]
	if form == nil {
		return nil
	}
	values := []json.RawMessage{raw}
	if strings.HasSuffix(name, "_ids") {
		values = elements(raw)
	}
	var ids []string
	for _, v := range values {
		v := strings.Trim(string(v), " \t\r\n")
		if !form.MatchString(v) || len(v) > 130 {
			break
		}
		ids = append(ids, strings.Trim(v, `"`))
	}
	return ids
}

// hasMember walks the tokens, because a map would lose members that come twice.
func hasMember(data []byte, is func(name string, raw json.RawMessage) bool) bool {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var value func() bool
	value = func() bool {
		t, err := dec.Token()
		if err != nil {
			return false
		}
		found := false
		switch t {
		case json.Delim('{'):
			for dec.More() {
				name, _ := dec.Token()
				var raw json.RawMessage
				if dec.Decode(&raw) != nil {
					return false
				}
				if name, ok := name.(string); ok && is(name, raw) {
					found = true
				}
				found = hasMember(raw, is) || found
			}
			_, _ = dec.Token()
		case json.Delim('['):
			for dec.More() {
				found = value() || found
			}
			_, _ = dec.Token()
		}
		return found
	}
	return value()
}

// parts are the ids of parts outside of the body's own metadata.
func parts(data []byte) (ids []string) {
	add := func(name string, raw json.RawMessage) bool {
		for _, id := range objectIDs(partMembers, name, raw) {
			if !slices.Contains(ids, id) && len(ids) < 16 {
				ids = append(ids, id)
			}
		}
		return false
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	_, _ = dec.Token()
	for dec.More() {
		token, _ := dec.Token()
		name, _ := token.(string)
		var raw json.RawMessage
		if dec.Decode(&raw) != nil {
			return ids
		}
		if name != "metadata" {
			add(name, raw)
			hasMember(raw, add)
		}
	}
	return ids
}

var itemLabels = []string{"role", "status", "summary", "phase", "call_id", "name", "namespace", "server_label", "created_by", "container_id"}

// storedItem is the id of an item whose content is stored; empty for every other element.
func storedItem(element json.RawMessage) string {
	if m := members(element); m == nil {
		return ""
	}
	var id, kind json.RawMessage
	has := map[string]bool{}
	dec := json.NewDecoder(bytes.NewReader(element))
	_, _ = dec.Token()
	for dec.More() {
		token, _ := dec.Token()
		name, _ := token.(string)
		var raw json.RawMessage
		if dec.Decode(&raw) != nil {
			return ""
		}
		squeezed := strings.Map(func(r rune) rune {
			if strings.ContainsRune(" \t\r\n", r) {
				return -1
			}
			return r
		}, string(raw))
		empty := slices.Contains([]string{"null", "[]", "{}"}, squeezed) || string(raw) == `""`
		null := string(raw) == "null"
		switch {
		case name == "id":
			id = raw
		case name == "type":
			kind = raw
		case slices.Contains(itemLabels, name):
		case slices.Contains([]string{"content", "arguments", "input", "output", "code"}, name):
			has["any"] = has["any"] || !null
			has[name] = has[name] || !empty
		default:
			has["any"] = has["any"] || !empty
			has[name] = has[name] || !empty
		}
	}
	if !itemID.Match(id) || len(id) > 130 {
		return ""
	}
	text := strings.Trim(string(id), `"`)
	is, _ := str(kind)
	stored := !has["any"]
	switch {
	case is == "item_reference":
		return text
	case is == "reasoning":
		stored = !has["content"] && !has["encrypted_content"]
	case is == "image_generation_call":
		stored = !has["result"]
	}
	if !stored || !itemPrefix.MatchString(text) {
		return ""
	}
	return text
}

var (
	itemID     = regexp.MustCompile(`^"[A-Za-z0-9_-]+"$`)
	itemPrefix = regexp.MustCompile(`^[a-z]+_.`)
)
