// Package capture reads captured answers of providers, for tests.
//
// A capture is one file below testdata/captures/PROVIDER: lines about it, an empty line,
// and the answer as it came, with a status line, headers, an empty line and a body.
//
//	expect: rejection kind=window code=rate_limit_error rule=five-hour
//	expect: spent five-hour resets=2026-07-31T17:20:00Z
//	recorded: 2026-07-31T15:09:25Z
//	request: subscription claude-opus-5
//	comment: a capped five-hour window
//
//	HTTP/2 429
//	retry-after: 7835
//
//	{"type":"error"}
//
// expect says what must be read from it (Check), one line for each fact in the words of
// Describe, or "nothing". The lines are written by hand from what is known of the provider, and
// never from what our own parsers answered. recorded is when the answer's headers
// arrived, RFC 3339. call, if there, says that the answer is to a call of the gateway's own:
// "look" or "look 1" (to the first or second of a provider's looks at usage) or "renewal"
// (of a login); expect then has the words of OfCall. body, if there, says "hex": the body is
// written in hexadecimal digits. request is the kind of account that served, and the model asked for
// if any. comment says where it is from, or what is peculiar; it and expect may be
// repeated. Any other key is an error, so that a typing mistake cannot switch a test off.
//
// Numbers are as captured. Ids are invented, and no file may hold a secret or a person's
// address: a test searches them all.
package capture

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/textproto"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast/internal/core/account"
)

// Capture is one captured answer.
type Capture struct {
	// Name is the file's, without its folder and extension.
	Name     string
	Expect   []string
	Recorded time.Time
	Comment  string
	// Kind and Model are those of the request; Model is empty when it named none.
	Kind  account.Kind
	Model string
	// Call is the gateway's own that was answered; empty for a client's request.
	Call string
	hex  bool

	Status int
	Header http.Header
	Body   []byte
}

// Load reads every capture of a folder, in the order of their names.
func Load(fsys fs.FS, dir string) ([]Capture, error) {
	names, err := fs.Glob(fsys, path.Join(dir, "*.http"))
	if err != nil {
		return nil, fmt.Errorf("list captures: %w", err)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("list captures: none in %s", dir)
	}
	var captures []Capture
	for _, name := range names {
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, fmt.Errorf("read capture: %w", err)
		}
		c, err := Parse(text)
		if err != nil {
			return nil, fmt.Errorf("read capture %s: %w", name, err)
		}
		c.Name = strings.TrimSuffix(path.Base(name), ".http")
		captures = append(captures, c)
	}
	return captures, nil
}

// Parse reads one capture. The body keeps every byte.
func Parse(text []byte) (Capture, error) {
	var c Capture
	about, answer, ok := bytes.Cut(text, []byte("\n\n"))
	if !ok {
		return Capture{}, errors.New("no empty line between the lines about it and the answer")
	}
	for line := range strings.SplitSeq(string(about), "\n") {
		if err := c.tell(line); err != nil {
			return Capture{}, err
		}
	}
	switch {
	case len(c.Expect) == 0:
		return Capture{}, errors.New("no expect line")
	case c.Recorded.IsZero():
		return Capture{}, errors.New("no recorded line")
	case c.Kind == "":
		return Capture{}, errors.New("no request line")
	}
	if err := c.answer(answer); err != nil {
		return Capture{}, err
	}
	return c, nil
}

// tell takes one line about the capture in.
func (c *Capture) tell(line string) error {
	key, value, ok := strings.Cut(line, ": ")
	if !ok || value == "" {
		return fmt.Errorf("line %q is not of the form key: value", line)
	}
	switch key {
	case "expect":
		c.Expect = append(c.Expect, value)
	case "comment":
		c.Comment = strings.TrimSpace(c.Comment + " " + value)
	case "recorded":
		if !c.Recorded.IsZero() {
			return errors.New("recorded is told twice")
		}
		at, err := time.Parse(time.RFC3339, value)
		if err != nil {
			return fmt.Errorf("read recorded: %w", err)
		}
		c.Recorded = at.UTC()
	case "call":
		if c.Call != "" {
			return errors.New("call is told twice")
		}
		if !slices.Contains([]string{"look", "look 1", "renewal"}, value) {
			return fmt.Errorf("unknown call %q", value)
		}
		c.Call = value
	case "body":
		if value != "hex" {
			return fmt.Errorf("the body is written as %q; it can be hex", value)
		}
		c.hex = true
	case "request":
		if c.Kind != "" {
			return errors.New("request is told twice")
		}
		kind, model, _ := strings.Cut(value, " ")
		c.Kind, c.Model = account.Kind(kind), model
		if c.Kind != account.Key && c.Kind != account.Subscription {
			return fmt.Errorf("request names the kind %q; it must be key or subscription", kind)
		}
	default:
		return fmt.Errorf("unknown key %q", key)
	}
	return nil
}

// answer reads the HTTP part: a status line without a reason, as HTTP/2 has none.
func (c *Capture) answer(text []byte) error {
	r := bufio.NewReader(bytes.NewReader(text))
	tp := textproto.NewReader(r)
	line, err := tp.ReadLine()
	if err != nil {
		return fmt.Errorf("read status line: %w", err)
	}
	version, code, _ := strings.Cut(line, " ")
	if version != "HTTP/1.1" && version != "HTTP/2" {
		return fmt.Errorf("status line %q does not begin with HTTP/1.1 or HTTP/2", line)
	}
	if c.Status, err = strconv.Atoi(code); err != nil || c.Status < 100 || c.Status > 599 {
		return fmt.Errorf("status line %q has no status", line)
	}
	header, err := tp.ReadMIMEHeader()
	if err != nil {
		return fmt.Errorf("read headers: %w", err)
	}
	c.Header = http.Header(header)
	if c.Body, err = io.ReadAll(r); err != nil {
		return fmt.Errorf("read body: %w", err)
	}
	if c.hex {
		if c.Body, err = hex.DecodeString(strings.Join(strings.Fields(string(c.Body)), "")); err != nil {
			return errors.New("the body is not written in hexadecimal digits")
		}
	}
	return nil
}
