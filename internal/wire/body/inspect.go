package body

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strconv"
	"sync"
	"unicode/utf8"
)

const (
	// maxID bounds model names and ids, in bytes: the longest that clients are known to
	// send, Claude Code's user_id, has about 300.
	maxID = 2048
	// maxTools bounds the tools whose names are hashed. Requests with some hundred exist.
	maxTools = 4096
	// keepScratch, in bytes, and keepSpans bound the memory kept for the next body.
	keepScratch, keepSpans = 256 << 10, 4096
)

// found is what a scan came across. Where a member comes twice, the later one replaces
// what the earlier one left.
type found struct {
	model, maxTokens, userID, cacheKey, tier, previous, conversation, session span

	stream, encrypted, title, stored, unstored bool
	modelUnread, misspelled                    bool

	// named has the ids that name objects; a row of its own, since release keeps it.
	named [][]byte
	// parts has those of what only a request about an object names, likewise.
	parts [][]byte
	// items has those of stored items, likewise.
	items [][]byte

	// system and instructions hold the spans of their texts.
	system, instructions []span
	// messages and input are the two members that carry the turns.
	messages, input turns
	// toolNames has a name for each of tools.
	toolNames  [][]byte
	toolsEmpty bool

	// Of the message, the content part and the tool being scanned.
	turn    *turns
	role    span
	kind    span
	content []span
	part    struct{ kind, text span }
	tool    struct{ name, function, kind span }
	item    item

	scratch, own []byte
}

// turns is what messages or input say.
type turns struct {
	isArray bool
	count   int
	// lead has the texts of the system and developer messages before any other.
	lead     []span
	pastLead bool
	// user is the first user text.
	user []byte
	// answered: a turn of the model's is among the first ones.
	answered bool
}

// maxUnanswered bounds the turns among which one of the model's is looked for: what comes
// before a conversation's first answer is a few.
const maxUnanswered = 16

func (t *turns) reset() {
	*t = turns{lead: t.lead[:0], user: t.user[:0]}
}

var scanners = sync.Pool{New: func() any { return new(scanner) }}

// Inspect reads a request body. A body that is not one JSON object, whole and valid by
// the rules of encoding/json, gives a *SyntaxError and no facts. The facts hold no
// reference to data.
func Inspect(data []byte) (Facts, error) {
	s := scanners.Get().(*scanner)
	s.data = data
	defer s.release()
	i := s.space(0)
	if s.at(i) != '{' {
		s.unexpected(i, "an object")
		return Facts{}, s.fault
	}
	if i = s.object(i, 0, (*scanner).member); i >= 0 {
		if i = s.space(i); i < len(data) {
			s.unexpected(i, "the end")
		}
	}
	if s.fault != nil {
		return Facts{}, s.fault
	}
	return s.facts(), nil
}

// release empties the scanner and gives it to the next body. What is kept of it is
// memory alone.
func (s *scanner) release() {
	f := &s.found
	spans := cap(f.toolNames) + cap(f.content) + cap(f.system) + cap(f.instructions) + cap(f.messages.lead) + cap(f.input.lead)
	if cap(f.scratch) > keepScratch || spans > keepSpans {
		return
	}
	clear(f.toolNames)
	clear(f.named)
	clear(f.parts[:cap(f.parts)])
	clear(f.items[:cap(f.items)])
	f.messages.reset()
	f.input.reset()
	s.data, s.fault = nil, nil
	s.found = found{
		system: f.system[:0], instructions: f.instructions[:0], messages: f.messages, input: f.input,
		toolNames: f.toolNames[:0], named: f.named[:0], parts: f.parts[:0], items: f.items[:0], content: f.content[:0], scratch: f.scratch[:0], own: f.own[:0],
	}
	scanners.Put(s)
}

// member scans a member of the body.
func (s *scanner) member(name []byte, i, depth int) int {
	switch string(name) {
	case "model":
		return s.modelMember(i, depth)
	case "stream":
		s.stream = s.at(i) == 't'
		return s.skip(i, depth)
	case "store":
		s.stored, s.unstored = s.at(i) == 't', s.at(i) == 'f'
		return s.skip(i, depth)
	case "max_tokens":
		from := i
		if i = s.skip(i, depth); i >= 0 {
			s.maxTokens = span{from, i}
		}
	case "metadata":
		s.userID = span{}
		parts := len(s.parts)
		i = s.within(i, depth, (*scanner).metadataMember)
		s.parts = s.parts[:parts] // what a client writes there is its own word
		return i
	case "prompt_cache_key":
		s.cacheKey, i = s.str(i, depth)
	case "service_tier":
		s.tier, i = s.str(i, depth)
	case "previous_response_id":
		s.previous, i = s.str(i, depth)
	case "conversation":
		if s.at(i) == '{' {
			s.conversation = span{}
			return s.object(i, depth, (*scanner).conversationMember)
		}
		s.conversation, i = s.str(i, depth)
	case "client_metadata":
		s.session = span{}
		return s.within(i, depth, (*scanner).clientMetadataMember)
	case "output_config":
		s.title = false
		return s.within(i, depth, (*scanner).outputConfigMember)
	case "system":
		i = s.texts(i, depth)
		s.system = append(s.system[:0], s.content...)
	case "instructions":
		i = s.texts(i, depth)
		s.instructions = append(s.instructions[:0], s.content...)
	case "messages":
		return s.turns(&s.messages, i, depth)
	case "input":
		s.items = s.items[:0]
		return s.turns(&s.input, i, depth)
	case "tools":
		s.toolNames, s.toolsEmpty = s.toolNames[:0], false
		if s.at(i) == '[' {
			s.toolsEmpty = s.at(s.space(i+1)) == ']'
			return s.array(i, depth, (*scanner).toolElement)
		}
		return s.skip(i, depth)
	default:
		s.misspelled = s.misspelled || bytes.EqualFold(name, []byte(modelField))
		return s.skip(i, depth)
	}
	return i
}

// modelMember scans a model. Parsers take the first one, the last one, or none where there are
// two, so which one is meant cannot be told. A null is not a model, to the providers either.
func (s *scanner) modelMember(i, depth int) int {
	before, first := s.model, s.at(i)
	s.model, i = s.str(i, depth)
	two := before != (span{}) && !bytes.Equal(s.data[before.from:before.to], s.data[s.model.from:s.model.to])
	s.modelUnread = s.modelUnread || two || first != '"' && first != 'n'
	return i
}

// within scans an object by its members, and skips a value of another kind.
func (s *scanner) within(i, depth int, member func(*scanner, []byte, int, int) int) int {
	if s.at(i) != '{' {
		return s.skip(i, depth)
	}
	return s.object(i, depth, member)
}

func (s *scanner) metadataMember(name []byte, i, depth int) int {
	if string(name) != "user_id" {
		return s.skip(i, depth)
	}
	s.userID, i = s.str(i, depth)
	return i
}

func (s *scanner) conversationMember(name []byte, i, depth int) int {
	if string(name) != "id" {
		return s.skip(i, depth)
	}
	s.conversation, i = s.str(i, depth)
	return i
}

func (s *scanner) clientMetadataMember(name []byte, i, depth int) int {
	if string(name) != "session_id" {
		return s.skip(i, depth)
	}
	s.session, i = s.str(i, depth)
	return i
}

// The path to a property of an answer's JSON schema is
// output_config.format.schema.properties.

func (s *scanner) outputConfigMember(name []byte, i, depth int) int {
	if string(name) != "format" {
		return s.skip(i, depth)
	}
	s.title = false
	return s.within(i, depth, (*scanner).formatMember)
}

func (s *scanner) formatMember(name []byte, i, depth int) int {
	if string(name) != "schema" {
		return s.skip(i, depth)
	}
	s.title = false
	return s.within(i, depth, (*scanner).schemaMember)
}

func (s *scanner) schemaMember(name []byte, i, depth int) int {
	if string(name) != "properties" {
		return s.skip(i, depth)
	}
	s.title = false
	return s.within(i, depth, (*scanner).propertyMember)
}

func (s *scanner) propertyMember(name []byte, i, depth int) int {
	s.title = s.title || string(name) == "title"
	return s.skip(i, depth)
}

// texts scans content, a string or an array of parts, and leaves the spans of its texts
// in s.content. A value of another kind has none.
func (s *scanner) texts(i, depth int) int {
	s.content = s.content[:0]
	switch s.at(i) {
	case '"':
		text, end := s.str(i, depth)
		s.content = append(s.content, text)
		return end
	case '[':
		return s.array(i, depth, (*scanner).partElement)
	}
	return s.skip(i, depth)
}

func (s *scanner) partElement(i, depth int) int {
	if s.at(i) != '{' {
		return s.skip(i, depth)
	}
	s.part.kind, s.part.text = span{}, span{}
	i = s.object(i, depth, (*scanner).partMember)
	if i >= 0 && s.part.text != (span{}) && (s.equal(s.part.kind, "text") || s.equal(s.part.kind, "input_text")) {
		s.content = append(s.content, s.part.text)
	}
	return i
}

func (s *scanner) partMember(name []byte, i, depth int) int {
	switch string(name) {
	case "type":
		s.part.kind, i = s.str(i, depth)
	case "text":
		s.part.text, i = s.str(i, depth)
	default:
		return s.skip(i, depth)
	}
	return i
}

// turns scans messages or input.
func (s *scanner) turns(t *turns, i, depth int) int {
	t.reset()
	switch s.at(i) {
	case '[':
		t.isArray = true
		s.turn = t
		return s.array(i, depth, (*scanner).messageElement)
	case '"':
		text, end := s.str(i, depth)
		if end >= 0 {
			s.content = append(s.content[:0], text)
			t.user = s.appendUserText(t.user)
		}
		return end
	}
	return s.skip(i, depth)
}

func (s *scanner) messageElement(i, depth int) int {
	t := s.turn
	t.count++
	if (t.pastLead && len(t.user) > 0 && (t.answered || t.count > maxUnanswered)) || s.at(i) != '{' {
		// Most of a long conversation is passed over here.
		t.pastLead = true
		if t == &s.input && s.at(i) == '{' {
			s.item = item{}
			if i = s.object(i, depth, (*scanner).itemMember); i >= 0 {
				s.keepItem()
			}
			return i
		}
		return s.skip(i, depth)
	}
	s.role, s.kind, s.content, s.item = span{}, span{}, s.content[:0], item{}
	i = s.object(i, depth, (*scanner).messageMember)
	if i < 0 {
		return i
	}
	if t == &s.input {
		s.item.kind = s.kind
		s.keepItem()
	}
	t.answered = t.answered || (t.count <= maxUnanswered && s.ofModel())
	switch {
	case s.equal(s.role, "system") || s.equal(s.role, "developer"):
		if !t.pastLead {
			t.lead = append(t.lead, s.content...)
		}
		return i
	case s.equal(s.role, "user") && len(t.user) == 0:
		t.user = s.appendUserText(t.user)
	}
	t.pastLead = true
	return i
}

// ofModel reports whether the message being scanned is a turn of the model's.
func (s *scanner) ofModel() bool {
	return s.equal(s.role, "assistant") || s.equal(s.kind, "reasoning") || s.equal(s.kind, "function_call") || s.equal(s.kind, "custom_tool_call")
}

func (s *scanner) messageMember(name []byte, i, depth int) int {
	switch string(name) {
	case "role":
		s.role, i = s.str(i, depth)
	case "type":
		s.kind, i = s.str(i, depth)
	case "content":
		s.carries(name, i)
		return s.texts(i, depth)
	default:
		return s.restOfItem(name, i, depth)
	}
	return i
}

func (s *scanner) toolElement(i, depth int) int {
	s.tool.name, s.tool.function, s.tool.kind = span{}, span{}, span{}
	if i = s.within(i, depth, (*scanner).toolMember); i < 0 || len(s.toolNames) >= maxTools {
		return i
	}
	// Tools that the provider runs may have a type alone.
	name := s.tool.name
	if name == (span{}) {
		name = s.tool.function
	}
	if name == (span{}) {
		name = s.tool.kind
	}
	s.toolNames = append(s.toolNames, s.data[name.from:name.to])
	return i
}

func (s *scanner) toolMember(name []byte, i, depth int) int {
	switch string(name) {
	case "name":
		s.tool.name, i = s.str(i, depth)
	case "type":
		s.tool.kind, i = s.str(i, depth)
	case "function":
		s.tool.function = span{}
		return s.within(i, depth, (*scanner).functionMember)
	default:
		return s.skip(i, depth)
	}
	return i
}

func (s *scanner) functionMember(name []byte, i, depth int) int {
	if string(name) != "name" {
		return s.skip(i, depth)
	}
	s.tool.function, i = s.str(i, depth)
	return i
}

// facts makes Facts of what was found in a valid body.
func (s *scanner) facts() Facts {
	f := Facts{
		Model:              s.id(s.model),
		Stream:             s.stream,
		UserID:             s.id(s.userID),
		PromptCacheKey:     s.id(s.cacheKey),
		ServiceTier:        s.id(s.tier),
		PreviousResponseID: s.id(s.previous),
		Conversation:       s.id(s.conversation),
		SessionID:          s.id(s.session),
		Encrypted:          s.encrypted,
		Stored:             s.stored,
		Unstored:           s.unstored,
		Objects:            copies(s.named),
		Parts:              copies(s.parts),
		Items:              copies(s.items),
		ToolsEmpty:         s.toolsEmpty,
		OutputTitle:        s.title,
		SystemHash:         s.systemHash(),
		ToolsHash:          s.toolsHash(),
	}
	f.ModelUnread = s.modelUnread || f.Model == "" && (s.model.to > s.model.from || s.misspelled)
	if n, err := strconv.ParseInt(string(s.data[s.maxTokens.from:s.maxTokens.to]), 10, 64); err == nil {
		f.MaxTokens = n
	}
	turns := &s.messages
	if !turns.isArray {
		turns = &s.input
	}
	f.Messages = turns.count
	f.Answered = turns.answered
	f.FirstUser = string(turns.user)
	return f
}

// id is a string that is no longer than an id may be, else empty.
func (s *scanner) id(p span) string {
	// Room for one character too many shows that there is one.
	s.scratch = appendText(s.scratch[:0], s.data[p.from:p.to], maxID+utf8.UTFMax)
	if len(s.scratch) > maxID {
		return ""
	}
	return string(s.scratch)
}

// equal reports whether a string is word, which is shorter than a member's name may be.
func (s *scanner) equal(p span, word string) bool {
	return string(appendText(s.name[:0], s.data[p.from:p.to], len(s.name))) == word
}

func (s *scanner) systemHash() [32]byte {
	turns := &s.messages
	if !turns.isArray {
		turns = &s.input
	}
	var lines lineHash
	lines.buf = s.scratch[:0]
	for _, texts := range [...][]span{s.system, s.instructions, turns.lead} {
		for _, p := range texts {
			lines.text(s.data[p.from:p.to])
		}
	}
	s.scratch = lines.buf
	return lines.sum()
}

func (s *scanner) toolsHash() [32]byte {
	if len(s.toolNames) == 0 {
		return [32]byte{}
	}
	b := s.scratch[:0]
	for i, name := range s.toolNames {
		from := len(b)
		b = appendText(b, name, maxID)
		s.toolNames[i] = b[from:]
	}
	slices.SortFunc(s.toolNames, bytes.Compare)
	from := len(b)
	for _, name := range s.toolNames {
		b = binary.AppendUvarint(b, uint64(len(name)))
		b = append(b, name...)
	}
	s.scratch = b
	return sha256.Sum256(b[from:])
}
