package catalog_test

import (
	"testing"

	"holdfast/internal/core/catalog"
)

func TestOrigins(t *testing.T) {
	for in, want := range map[string]string{
		"https://app.example.com": "https://app.example.com", " HTTPS://App.Example.com/ ": "https://app.example.com",
		"https://app.example.com:443": "https://app.example.com", "http://localhost:80": "http://localhost", "http://localhost:5173": "http://localhost:5173",
		"http://[::1]:3000": "http://[::1]:3000", "chrome-extension://abcdefgh": "chrome-extension://abcdefgh", "vscode-webview://1a2b": "vscode-webview://1a2b",
		"*": "", "https://*.example.com": "", "null": "", "app.example.com": "", "https://app.example.com/path": "", "https://u:p@app.example.com": "",
		"https://app.example.com?x": "", "https://app.example.com#": "", "https://": "", "file:///tmp": "",
		"https://app.example.com:": "", "https://exa mple.com": "",
	} {
		c, err := catalog.Catalog{}.Set("allowed_origins", in)
		if (err == nil) != (want != "") {
			t.Errorf("%q: got error %v, want %q", in, err, want)
			continue
		}
		if list := c.Settings().AllowedOrigins; err == nil && (len(list) != 1 || list[0] != want) {
			t.Errorf("%q: got %q, want %q", in, list, want)
		}
	}
}
