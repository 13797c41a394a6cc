package functionurl

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// invokeAddress is where an Invoke API takes events for a function.
func invokeAddress(endpoint, function string) (string, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return "", errors.New("the endpoint is no http address: name one like http://127.0.0.1:3001")
	}
	if !strings.HasSuffix(u.Path, "/invocations") {
		u = u.JoinPath("2015-03-31/functions", function, "invocations")
	}
	return u.String(), nil
}

// invoke has the function behind an Invoke API answer.
func (f *Front) invoke(w http.ResponseWriter, r *http.Request, event []byte) {
	a, err := f.callEndpoint(r, event)
	if err != nil {
		f.refuse(w, err)
		return
	}
	f.deliver(w, a)
}

func (f *Front) callEndpoint(r *http.Request, event []byte) (*answer, error) {
	req, err := http.NewRequestWithContext(r.Context(), http.MethodPost, f.o.Endpoint, bytes.NewReader(event))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := f.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("invoke the function: %w", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("invoke the function: %w", err)
	}
	var quoted string // MiniStack makes a JSON string of what is no JSON
	if json.Unmarshal(text, &quoted) == nil {
		text = []byte(quoted)
	}
	// Emulators answer 200 to nearly everything: only a prelude makes an answer.
	if resp.StatusCode != http.StatusOK || resp.Header.Get("X-Amz-Function-Error") != "" || !bytes.Contains(text, make([]byte, 8)) {
		var fault struct{ ErrorType, ErrorMessage string }
		_ = json.Unmarshal(text, &fault) // then it says nothing
		return nil, fmt.Errorf("%w: status %d, type %q, message %q", errFailed, resp.StatusCode, fault.ErrorType, fault.ErrorMessage)
	}
	return &answer{
		framed: true, body: bytes.NewReader(text),
		trailer: func() http.Header { return nil }, ended: make(chan bool, 1),
	}, nil
}
