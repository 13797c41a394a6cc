package anthropic

import "holdfast/internal/provider/dialect"

// Values whose type cannot be relied on.
type (
	text   = dialect.Text
	number = dialect.Number
	tokens = dialect.Tokens
)
