package body

// Facts are what the gateway needs to know of a request body, in the wire's own names.
// Which of them matter is for the provider's package to say. A field that is missing, or
// is not of the type the wire has there, is left at its zero value: the body's faults are
// the upstream's to name.
type Facts struct {
	Model string // model; like all ids here, at most maxID bytes, else empty
	// ModelUnread: the body may name a model that could not be told: it is neither a JSON object
	// nor a form, or names two models, or one that is no text or longer than any, or in capitals
	// alone ("Model"), which some writers make of their own names.
	ModelUnread bool
	Stream      bool  // stream
	MaxTokens   int64 // max_tokens; 0 when absent
	// UserID is metadata.user_id when that is a string.
	UserID             string
	PromptCacheKey     string // prompt_cache_key
	ServiceTier        string // service_tier
	PreviousResponseID string // previous_response_id
	Conversation       string // conversation, or conversation.id
	SessionID          string // client_metadata.session_id
	// Encrypted: some member named encrypted_content has a non-empty string value.
	Encrypted bool
	// Stored, Unstored: store is true, or false; neither when it is left to the provider.
	Stored, Unstored bool
	// Objects are the ids by which the body names what lives on one account, each once, in
	// the body's order, at most maxObjects: files, containers, skills and vector stores, in
	// the members and with the prefixes that providers have for them (see objects.go).
	Objects []string
	// Parts are the ids, likewise and outside of metadata, of agents, assistants, environments, memory stores, threads
	// and vaults. In a request to a model such members are anybody's words.
	Parts []string
	// Items are the ids of elements of input whose content only the account has that stored
	// them, each once, in the body's order, at most maxItems: references, and items that come
	// with an id and without their content (see items.go).
	Items []string
	// Messages counts the elements of messages (or of input when that is an array).
	Messages int
	// Answered: a turn of the model's is among the first elements of messages or input, as in
	// every request that carries a conversation's history.
	Answered bool
	// FirstUser is the text of the first user message that has any (of messages, or of
	// input; a string input is itself the text): its text parts, each without reminders and
	// the space around it, joined by newlines; at most maxText bytes.
	FirstUser string
	// SystemHash, ToolsHash are hashes for a fingerprint: of the system text (system,
	// instructions and leading system and developer messages) without volatile lines, and
	// of the tools' names, sorted. Zero when none exist.
	SystemHash, ToolsHash [32]byte
	// ToolsEmpty: tools is present and is an empty array.
	ToolsEmpty bool
	// OutputTitle: output_config.format.schema.properties has a member title.
	OutputTitle bool
}
