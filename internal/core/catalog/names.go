package catalog

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// Invalid is a refusal of what was typed: no catalog would take it. Other refusals
// depend on what the catalog holds and are ordinary errors.
type Invalid string

func (e Invalid) Error() string { return string(e) }

const longestName = 64

// secret is how keys begin that people have at hand. A short name may begin with xai- or
// hf_ without being one.
var secret = regexp.MustCompile(`(?i)\b(?:sk[-_][a-z0-9_-]{4,}|(?:hf_|xai-)[a-z0-9_-]{20,})`)

// LooksSecret reports whether a text that was typed holds what looks like a key.
func LooksSecret(text string) bool { return secret.MatchString(text) }

// HideSecrets returns a text without what looks like keys in it.
func HideSecrets(text string) string { return secret.ReplaceAllString(text, "[secret]") }

// CheckName refuses what cannot be a name of an account or a client key. The refusal
// does not repeat what was typed: it may be a secret in the wrong place.
func CheckName(name string) error {
	if LooksSecret(name) {
		return Invalid("this looks like a secret, not like a name; a secret is never given as an argument: " +
			"use --key-env VARIABLE or --key-stdin")
	}
	if len(name) < 1 || len(name) > longestName || strings.ContainsFunc(name, notInName) || !alphanumeric(name[0]) {
		return Invalid("a name has 1 to 64 characters of a-z, 0-9, dot, dash and underscore, and begins with a letter or digit")
	}
	return nil
}

func alphanumeric(c byte) bool { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') }

func notInName(r rune) bool {
	return r > '~' || (!alphanumeric(byte(r)) && !strings.ContainsRune("._-", r))
}

// CheckBaseURL refuses what cannot be an account's base URL and returns the rest as it
// is kept: scheme and host only, each host in one spelling. Empty stays empty: the provider's own. Plain http is
// for loopback and private addresses, because the credential travels with it. The
// refusal does not repeat the URL, which may hold a password.
func CheckBaseURL(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Opaque != "" || u.Hostname() == "" || (u.Scheme != "https" && u.Scheme != "http") {
		return "", Invalid("a base URL is a scheme and a host, such as https://gateway.example.com or http://127.0.0.1:9000")
	}
	if u.User != nil {
		return "", Invalid("a base URL carries no user name or password: the account's own credential is sent")
	}
	if (u.Path != "" && u.Path != "/") || u.RawQuery != "" || u.ForceQuery || strings.Contains(text, "#") {
		return "", Invalid("a base URL ends after the host and port, and paths stay as the provider spells them: leave out what comes behind")
	}
	host, port := u.Host, u.Port()
	if port != "" || strings.HasSuffix(u.Host, ":") {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return "", Invalid("the port of a base URL is a number from 1 to 65535")
		}
		host, port = strings.TrimSuffix(host, ":"+port), fmt.Sprint(":", n)
		if port == ownPorts[u.Scheme] {
			port = ""
		}
	}
	if u.Scheme == "http" && !private(u.Hostname()) {
		return "", Invalid("plain http is only for loopback and private addresses (127.0.0.1, 10.x, 192.168.x, …), since the account's secret travels with it; use https")
	}
	return u.Scheme + "://" + strings.ToLower(strings.TrimSuffix(host, ".")) + port, nil
}

// ownPorts are where a scheme leads without a port.
var ownPorts = map[string]string{"https": ":443", "http": ":80"}

// private reports whether a host is certainly this machine's or a private network's. A
// name other than localhost is not: what it leads to is for others to say.
func private(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && (addr.IsLoopback() || addr.IsPrivate())
}

func noAccount(name string) error {
	if CheckName(name) != nil { // so it is no account's name, and may be a secret
		return Invalid("there is no account of that name; `holdfast account list` shows them")
	}
	return fmt.Errorf("there is no account %q; `holdfast account list` shows them", name)
}

func noKey(name string) error {
	if CheckName(name) != nil {
		return Invalid("there is no client key of that name; `holdfast key list` shows them")
	}
	return fmt.Errorf("there is no client key %q; `holdfast key list` shows them", name)
}
