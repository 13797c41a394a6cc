package xai

import "holdfast/internal/provider/dialect"

// Values whose type cannot be relied on.
type (
	text   = dialect.Text
	tokens = dialect.Tokens
)
