package lambdahttp

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"
)

// runtimeAPI is the platform as a function sees it.
// https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html
type runtimeAPI struct {
	base   string
	client *http.Client
}

func newRuntimeAPI(address string) (*runtimeAPI, error) {
	if address == "" {
		address = os.Getenv("AWS_LAMBDA_RUNTIME_API")
	}
	if address == "" {
		return nil, errors.New("AWS_LAMBDA_RUNTIME_API is not set: this program is started by Lambda, or by a local Function URL")
	}
	return &runtimeAPI{
		base: "http://" + address + "/2018-06-01/runtime/",
		client: &http.Client{Transport: &http.Transport{
			Proxy:              nil, // a proxy that is meant for upstream calls must not catch these
			DisableCompression: true,
			WriteBufferSize:    chunkSize + 64, // a chunk with its frame leaves in one call
		}},
	}, nil
}

// chunkSize is what net/http's client takes of a body at once.
const chunkSize = 32 << 10

// invocation is what the platform says of an event, beside its bytes.
type invocation struct {
	id          string
	deadline    time.Time // the process is killed then; zero if it was not told
	traceID     string
	functionARN string
	tenantID    string
}

// next waits for the next event and reads it into event.
func (a *runtimeAPI) next(event *bytes.Buffer) (invocation, error) {
	resp, err := a.client.Get(a.base + "invocation/next") //nolint:noctx // it waits as long as the process lives
	if err != nil {
		return invocation{}, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return invocation{}, fmt.Errorf("the Runtime API answers %s", resp.Status)
	}
	event.Reset()
	if n := resp.ContentLength; n > 0 {
		event.Grow(int(n) + bytes.MinRead)
	}
	if _, err := event.ReadFrom(resp.Body); err != nil {
		return invocation{}, fmt.Errorf("read the event: %w", err)
	}
	inv := invocation{
		id:          resp.Header.Get("Lambda-Runtime-Aws-Request-Id"),
		traceID:     resp.Header.Get("Lambda-Runtime-Trace-Id"),
		functionARN: resp.Header.Get("Lambda-Runtime-Invoked-Function-Arn"),
		tenantID:    resp.Header.Get("Lambda-Runtime-Aws-Tenant-Id"),
	}
	if ms, err := strconv.ParseInt(resp.Header.Get("Lambda-Runtime-Deadline-Ms"), 10, 64); err == nil {
		inv.deadline = time.UnixMilli(ms)
	}
	if inv.id == "" {
		return invocation{}, errors.New("an event came without an id")
	}
	return inv, nil
}

// Trailers by which a stream that began ends as an error.
const (
	trailerErrorType = "Lambda-Runtime-Function-Error-Type"
	trailerErrorBody = "Lambda-Runtime-Function-Error-Body"
)

// respond sends an answer until the stream ends. An error means that the platform did not
// take it.
func (a *runtimeAPI) respond(id string, s *stream) error {
	req, err := http.NewRequest(http.MethodPost, a.base+"invocation/"+id+"/response", s) //nolint:noctx // ends with the stream
	if err != nil {
		return err
	}
	req.Trailer = s.trailer
	req.Header.Set("Content-Type", "application/vnd.awslambda.http-integration-response")
	req.Header.Set("Lambda-Runtime-Function-Response-Mode", "streaming")
	return a.send(req)
}

// fault is an error as the platform reads it. Its type is written Category.Reason.
type fault struct {
	Type    string `json:"errorType"`
	Message string `json:"errorMessage"`
}

func (f fault) json() []byte {
	b, _ := json.Marshal(f) // two strings
	return b
}

func (f fault) Error() string { return f.Message }

// trailer puts a fault where the end of a stream says it.
func (f fault) trailer(h http.Header) {
	h.Set(trailerErrorType, f.Type)
	h.Set(trailerErrorBody, base64.StdEncoding.EncodeToString(f.json()))
}

// fail ends an invocation that sent nothing.
func (a *runtimeAPI) fail(id string, f fault) error { return a.report("invocation/"+id+"/error", f) }

// failInit says that the function could not be set up.
func (a *runtimeAPI) failInit(f fault) error { return a.report("init/error", f) }

func (a *runtimeAPI) report(path string, f fault) error {
	req, err := http.NewRequest(http.MethodPost, a.base+path, bytes.NewReader(f.json())) //nolint:noctx // the platform answers at once, or is gone
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Lambda-Runtime-Function-Error-Type", f.Type)
	return a.send(req)
}

func (a *runtimeAPI) send(req *http.Request) error {
	resp, err := a.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, chunkSize)) // so that the connection can serve again
	if resp.StatusCode != http.StatusAccepted {
		return fmt.Errorf("the Runtime API answers %s", resp.Status)
	}
	return nil
}
