package dynamostore

import (
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
)

// WithTransport is a client's HTTP client with changes to the transport below all that
// Client put around it.
func WithTransport(client aws.HTTPClient, change func(*http.Transport)) aws.HTTPClient {
	whole := client.(wholeBody)
	return wholeBody{whole.client.(*awshttp.BuildableClient).WithTransportOptions(change)}
}
