package awstest

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// Refuse answers with an error of the service's by its code, such as
// "ThrottlingException". Nothing is applied.
func Refuse(status int, code string) Trouble {
	return func(x *Exchange) { x.refuse(status, code) }
}

func (x *Exchange) refuse(status int, code string) {
	const said = "brought about by a test"
	if strings.HasPrefix(x.request.Header.Get("Content-Type"), "application/cbor") { // as CloudWatch has it
		body := []byte{0xa2} // a map of two
		for _, text := range []string{"__type", "com.amazonaws.cloudwatch#" + code, "message", said} {
			body = append(append(body, 0x78, byte(len(text))), text...) // a text, its length in a byte
		}
		x.Answer(status, http.Header{"Content-Type": {"application/cbor"}, "Smithy-Protocol": {"rpc-v2-cbor"}}, body)
		return
	}
	body := fmt.Sprintf(`{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":"%s"}`, code, said)
	x.Answer(status, http.Header{"Content-Type": {"application/x-amz-json-1.0"}}, []byte(body))
}

// Lose cuts the connection before anything is applied.
func Lose(x *Exchange) { x.Cut() }

// Ignore never answers, and applies nothing.
func Ignore(x *Exchange) { x.Wait() }

// ApplyAndCut applies the request and cuts the connection instead of answering.
func ApplyAndCut(x *Exchange) {
	x.Apply(x.Body)
	x.Cut()
}

// ApplyAndIgnore applies the request and never answers.
func ApplyAndIgnore(x *Exchange) {
	x.Apply(x.Body)
	x.Wait()
}

// ApplyAndRefuse applies the request and answers with a server's error.
func ApplyAndRefuse(status int, code string) Trouble {
	return func(x *Exchange) {
		x.Apply(x.Body)
		x.refuse(status, code)
	}
}

// ApplyAndCutShort applies the request and cuts the connection in the middle of the
// answer.
func ApplyAndCutShort(x *Exchange) {
	status, header, body := x.Apply(x.Body)
	for name, values := range header {
		x.writer.Header()[name] = values
	}
	x.writer.Header().Set("Content-Length", fmt.Sprint(len(body)))
	x.writer.WriteHeader(status)
	_, _ = x.writer.Write(body[:len(body)/2])
	_ = http.NewResponseController(x.writer).Flush()
	x.Cut()
}

// ApplyThen applies the request, lets another do something, and cuts the connection.
func ApplyThen(another func()) Trouble {
	return func(x *Exchange) {
		x.Apply(x.Body)
		another()
		x.Cut()
	}
}

// LoseThen lets another do something and cuts the connection, with nothing applied.
func LoseThen(another func()) Trouble {
	return func(x *Exchange) {
		another()
		x.Cut()
	}
}

// LeaveUnprocessed passes on the first n keys of a BatchGetItem of one table, and gives
// the others back as unprocessed.
func LeaveUnprocessed(n int) Trouble {
	return func(x *Exchange) {
		var request struct {
			RequestItems map[string]map[string]json.RawMessage
		}
		if err := json.Unmarshal(x.Body, &request); err != nil {
			x.Answer(http.StatusInternalServerError, nil, []byte(err.Error()))
			return
		}
		for table, of := range request.RequestItems {
			var keys []json.RawMessage
			if err := json.Unmarshal(of["Keys"], &keys); err != nil || n >= len(keys) {
				continue
			}
			left := map[string]json.RawMessage{}
			for name, value := range of {
				left[name] = value
			}
			of["Keys"], left["Keys"] = marshal(keys[:n]), marshal(keys[n:])
			status, header, body := http.StatusOK, http.Header(nil), []byte(`{"Responses":{}}`)
			if n > 0 {
				status, header, body = x.Apply(marshal(request))
			}
			var answer map[string]json.RawMessage
			if err := json.Unmarshal(body, &answer); err != nil || status != http.StatusOK {
				x.Answer(status, header, body)
				return
			}
			answer["UnprocessedKeys"] = marshal(map[string]any{table: left})
			header.Del("X-Amz-Crc32")
			x.Answer(status, header, marshal(answer))
			return
		}
		x.Pass()
	}
}

func marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // of what was decoded from JSON
	}
	return b
}

// Refused is an endpoint where nobody listens.
func Refused(t testing.TB) string {
	t.Helper()
	l := listen(t)
	l.Close()
	return "http://" + l.Addr().String()
}

// Deaf is an endpoint that accepts every connection and never reads or answers.
func Deaf(t testing.TB) string {
	t.Helper()
	l := listen(t)
	var mu sync.Mutex
	var accepted []net.Conn
	var done sync.WaitGroup
	done.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			accepted = append(accepted, conn)
			mu.Unlock()
		}
	})
	t.Cleanup(func() {
		l.Close()
		done.Wait()
		for _, conn := range accepted {
			conn.Close()
		}
	})
	return "http://" + l.Addr().String()
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}
