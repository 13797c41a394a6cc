package xai

import "holdfast/internal/provider/dialect"

// Values whose type cannot be relied on.
type (
	number = dialect.Number
	text   = dialect.Text
	tokens = dialect.Tokens
)
