package roundtrip

// Older has a host's last answer be one over HTTP/1.
func Older(t *Transport, host string) { t.saw(host, 1) }
