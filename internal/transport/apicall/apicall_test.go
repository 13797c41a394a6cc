package apicall_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/internal/provider"
	"holdfast/internal/transport/apicall"
)

// fresh uses every connection once, and trusts nobody's certificate.
func fresh() *http.Transport { return &http.Transport{DisableKeepAlives: true} }

func post(url string) provider.Call {
	return provider.Call{
		Method: http.MethodPost, URL: url, Body: []byte(`{"refresh_token":"secret-EXAMPLE"}`),
		Header: http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer secret-EXAMPLE"}},
	}
}

func TestDo(t *testing.T) {
	at := time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)
	var seen *http.Request
	var body []byte
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r
		body, _ = io.ReadAll(r.Body)
		w.Header().Set("X-Answer", "yes")
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, "short and stout")
	}))
	defer s.Close()
	c := apicall.Caller{Transport: fresh(), Version: "1.2.3", Now: func() time.Time { return at }}
	call := post("https://provider.example/v1/oauth/token?x=1")
	got, err := c.Do(t.Context(), call, s.URL+"/is/ignored")
	if err != nil {
		t.Fatal(err)
	}
	if got.Status != http.StatusTeapot || string(got.Body) != "short and stout" || got.Header.Get("X-Answer") != "yes" || !got.At.Equal(at) {
		t.Errorf("got %+v, want the whole answer", got)
	}
	if seen.URL.String() != "/v1/oauth/token?x=1" || seen.Host != strings.TrimPrefix(s.URL, "http://") || !bytes.Equal(body, call.Body) || seen.ContentLength != int64(len(call.Body)) {
		t.Errorf("sent %s to %s with %q, want the call's path and body to the account's host", seen.URL, seen.Host, body)
	}
	if agent := seen.Header.Get("User-Agent"); agent != "holdfast/1.2.3" {
		t.Errorf("got User-Agent %q, want our own", agent)
	}
	if call.Header.Get("User-Agent") != "" {
		t.Error("the call was changed")
	}

	call = provider.Call{Method: http.MethodGet, URL: s.URL + "/usage", Header: http.Header{"User-Agent": {"theirs"}}}
	if _, err := c.Do(t.Context(), call, ""); err != nil || seen.Header.Get("User-Agent") != "theirs" || seen.Method != http.MethodGet || len(body) != 0 {
		t.Errorf("got error %v, User-Agent %q, %s with %q; want the call's own, without a body", err, seen.Header.Get("User-Agent"), seen.Method, body)
	}
}

func TestDecoded(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, "plain")
		_ = z.Close()
	}))
	defer s.Close()
	transport := fresh()
	transport.DisableCompression = true
	got, err := apicall.Caller{Transport: transport}.Do(t.Context(), post(s.URL), "")
	if err != nil || string(got.Body) != "plain" {
		t.Errorf("got %q and error %v, want it decoded", got.Body, err)
	}
}

func TestRedirectsAreAnswers(t *testing.T) {
	requests := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	}))
	defer s.Close()
	got, err := apicall.Caller{Transport: fresh()}.Do(t.Context(), post(s.URL), "")
	if err != nil || got.Status != http.StatusTemporaryRedirect || requests != 1 {
		t.Errorf("got status %d, error %v and %d requests, want the redirect itself, once", got.Status, err, requests)
	}
}

// What cannot have reached the provider is told from what may have.
func TestErrors(t *testing.T) {
	aborts := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		panic(http.ErrAbortHandler)
	}))
	defer aborts.Close()
	cuts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "secret-EXAMPLE")
	}))
	defer cuts.Close()
	floods := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(make([]byte, 2<<20))
	}))
	defer floods.Close()
	garbled := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = io.WriteString(w, "not gzip")
	}))
	defer garbled.Close()
	unknown := httptest.NewTLSServer(http.NotFoundHandler()) // its certificate is nobody's
	unknown.Config.ErrorLog = nil
	defer unknown.Close()
	leaving, leave := context.WithCancel(t.Context()) // once the call has arrived
	mute := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		leave()
		<-r.Context().Done()
	}))
	defer mute.Close()
	greeting, hangUp := context.WithCancel(t.Context()) // once there is a connection
	deaf := listen(t, hangUp)

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	refused := func() error { return errors.New("too late") }
	for _, c := range []struct {
		name string
		ctx  context.Context
		url  string
		base string
		get  bool
		last func() error
		want error
	}{
		{name: "nobody listens", url: "http://127.0.0.1:1", want: apicall.ErrNotSent},
		{name: "nobody listens, no body", url: "http://127.0.0.1:1", get: true, want: apicall.ErrNotSent},
		{name: "no such host", url: "http://nowhere.invalid", want: apicall.ErrNotSent},
		{name: "a certificate of nobody's", url: unknown.URL, want: apicall.ErrNotSent},
		{name: "TLS with who does not speak it", url: strings.Replace(aborts.URL, "http", "https", 1), want: apicall.ErrNotSent},
		{name: "a handshake without an answer", ctx: greeting, url: "https://" + deaf, want: apicall.ErrNotSent},
		{name: "the context had ended", ctx: ended, url: aborts.URL, want: apicall.ErrNotSent},
		{name: "kept back at last", url: aborts.URL, last: refused, want: apicall.ErrNotSent},
		{name: "kept back at last, no body", url: aborts.URL, get: true, last: refused, want: apicall.ErrNotSent},
		{name: "no URL", url: "http://a b/", want: apicall.ErrNotSent},
		{name: "no base URL", url: aborts.URL, base: "http://a b/", want: apicall.ErrNotSent},
		{name: "ended without an answer", url: aborts.URL, want: apicall.ErrNoAnswer},
		{name: "ended without an answer, no body", url: aborts.URL, get: true, want: apicall.ErrNoAnswer},
		{name: "given up before an answer", ctx: leaving, url: mute.URL, want: apicall.ErrNoAnswer},
		{name: "cut", url: cuts.URL, want: apicall.ErrNoAnswer},
		{name: "too large", url: floods.URL, want: apicall.ErrNoAnswer},
		{name: "not coded as it says", url: garbled.URL, want: apicall.ErrNoAnswer},
	} {
		t.Run(c.name, func(t *testing.T) {
			call := post(c.url)
			if c.get {
				call.Method, call.Body = http.MethodGet, nil
			}
			ctx := c.ctx
			if ctx == nil {
				ctx = t.Context()
			}
			transport := fresh()
			transport.DisableCompression = true
			got, err := apicall.Caller{Transport: transport, Last: c.last}.Do(ctx, call, c.base)
			if !errors.Is(err, c.want) || errors.Is(err, apicall.ErrNotSent) && errors.Is(err, apicall.ErrNoAnswer) {
				t.Errorf("got status %d and error %v, want %v", got.Status, err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "EXAMPLE") {
				t.Errorf("got a secret in %v", err)
			}
		})
	}
}

// listen accepts one connection, reports that it did, and writes nothing to it.
func listen(t *testing.T, accepted func()) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	conns := make(chan net.Conn, 1)
	go func() {
		if conn, err := l.Accept(); err == nil {
			conns <- conn
			accepted()
		}
		close(conns)
	}()
	t.Cleanup(func() {
		_ = l.Close()
		for conn := range conns {
			_ = conn.Close()
		}
	})
	return l.Addr().String()
}

// silent is a transport that never answers, having taken the body.
type silent struct{}

func (silent) RoundTrip(r *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
	return nil, context.Cause(r.Context())
}

func TestBoundedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, within := range []time.Duration{0, 3 * time.Second} {
			want := within
			if within == 0 {
				want = apicall.DefaultWithin
			}
			begun := time.Now()
			_, err := apicall.Caller{Transport: silent{}, Within: within}.Do(context.Background(), post("http://x.example"), "")
			if !errors.Is(err, apicall.ErrNoAnswer) || !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != want {
				t.Errorf("got %v after %v, want no answer after %v", err, time.Since(begun), want)
			}
		}
	})
}
