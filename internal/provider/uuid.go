package provider

// IsUUID reports whether a text is written like a UUID (RFC 9562, section 4), in either case.
// A client's session may be named by one in a header, in a body and by X-Holdfast-Conversation,
// and is the same conversation in each, whatever its case.
func IsUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch i {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'f') {
				return false
			}
		}
	}
	return true
}
