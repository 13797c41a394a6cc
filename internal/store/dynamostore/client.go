package dynamostore

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// The SDK's defaults suit work in the background: 30 s to connect, no limit on waiting for
// an answer, a second's pause after a throttle. Here somebody waits, for no longer than
// store.CallTimeout. Two answers that do not come fit into it.
const (
	connectTimeout = time.Second
	answerTimeout  = 800 * time.Millisecond
	attempts       = 2
	maxPause       = 20 * time.Millisecond
	// idleConnections are as many as a busy local gateway has calls in flight.
	idleConnections = 100
)

// Client returns a client fit for calls that a request waits for. Region, endpoint and
// credentials are those of cfg, and so is its HTTP client if it is no BuildableClient.
func Client(cfg aws.Config) *dynamodb.Client {
	return dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
		if client, ok := o.HTTPClient.(*awshttp.BuildableClient); ok {
			o.HTTPClient = client.WithDialerOptions(func(d *net.Dialer) {
				d.Timeout = connectTimeout
			}).WithTransportOptions(func(t *http.Transport) {
				t.TLSHandshakeTimeout = connectTimeout
				t.ResponseHeaderTimeout = answerTimeout
				t.MaxIdleConns = idleConnections
				t.MaxIdleConnsPerHost = idleConnections
			})
		}
		o.HTTPClient = wholeBody{o.HTTPClient}
		// The host of an endpoint that names the account differs from that of the
		// region: one more name for proxies and private endpoints to know.
		o.AccountIDEndpointMode = aws.AccountIDEndpointModeDisabled
		o.EndpointDiscovery.EnableEndpointDiscovery = aws.EndpointDiscoveryDisabled
	})
}

// wholeBody hands net/http a request's body in one piece, which the SDK cannot close
// early: smithy's ClientHandler closes its own as soon as an answer's headers are there.
// With that, against a server on this machine, an answer was now and then lost unread with
// its connection ("use of closed network connection"); with one piece it was not.
type wholeBody struct{ client aws.HTTPClient }

func (w wholeBody) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.Body != http.NoBody {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		_ = r.Body.Close() // read to its end
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	return w.client.Do(r)
}

func newRetryer() *retry.Standard {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = attempts
		o.MaxBackoff = maxPause
		o.Retryables = append(o.Retryables, retry.IsErrorRetryableFunc(alsoRepeat))
	})
}

// alsoRepeat adds to what the SDK tries again: an answer that was cut or garbled on its
// way, and a write that met a transaction.
func alsoRepeat(err error) aws.Ternary {
	var garbled *smithy.DeserializationError
	var met *types.TransactionConflictException
	if errors.As(err, &garbled) || errors.As(err, &met) {
		return aws.TrueTernary
	}
	return aws.UnknownTernary
}

// call is one call's use of the backend's retryer.
type call struct {
	*retry.Standard
	// once is set for what must not be applied twice.
	once bool
	// unsure tells afterwards that an attempt may have been applied though it failed.
	unsure bool
}

// IsErrorRetryable is asked after every attempt that failed.
func (c *call) IsErrorRetryable(err error) bool {
	if !notApplied(err) {
		c.unsure = true
		if c.once {
			return false
		}
	}
	return c.Standard.IsErrorRetryable(err)
}

func (c *call) use(o *dynamodb.Options) { o.Retryer = c }

// notApplied reports whether an attempt failed before it could have changed anything: it
// was refused, or it never reached anybody.
func notApplied(err error) bool {
	var api smithy.APIError
	var response interface{ HTTPStatusCode() int }
	if errors.As(err, &api) && errors.As(err, &response) {
		return response.HTTPStatusCode() < 500
	}
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Op == "dial" || op.Op == "proxyconnect"
	}
	return false
}
