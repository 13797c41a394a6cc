package cloud

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// Environment returns what the environment alone says: region, credentials, endpoints. It
// reads AWS_REGION (or AWS_DEFAULT_REGION), AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
// AWS_SESSION_TOKEN, AWS_ENDPOINT_URL and AWS_ENDPOINT_URL_SERVICE,
// AWS_IGNORE_CONFIGURED_ENDPOINT_URLS, AWS_USE_FIPS_ENDPOINT and
// AWS_USE_DUALSTACK_ENDPOINT, and takes an empty variable as one that is not set, as the
// SDK does.
//
// A function's credentials do not change for as long as its process lives.
func Environment() (aws.Config, error) {
	region := os.Getenv("AWS_REGION")
	if region == "" {
		region = os.Getenv("AWS_DEFAULT_REGION")
	}
	if region == "" {
		return aws.Config{}, errors.New("AWS_REGION is not set")
	}
	credentials := aws.Credentials{
		AccessKeyID:     os.Getenv("AWS_ACCESS_KEY_ID"),
		SecretAccessKey: os.Getenv("AWS_SECRET_ACCESS_KEY"),
		SessionToken:    os.Getenv("AWS_SESSION_TOKEN"),
		Source:          "environment",
	}
	if credentials.AccessKeyID == "" || credentials.SecretAccessKey == "" {
		return aws.Config{}, errors.New("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not both set")
	}
	cfg := aws.Config{
		Region: region,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return credentials, nil
		}),
		ConfigSources: []any{variables{}},
	}
	if url := os.Getenv("AWS_ENDPOINT_URL"); url != "" && !flag("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS") {
		cfg.BaseEndpoint = &url
	}
	return cfg, nil
}

// variables answers the questions that the SDK's clients ask of a configuration's source.
type variables struct{}

// GetServiceBaseEndpoint returns a service's own endpoint.
func (variables) GetServiceBaseEndpoint(_ context.Context, service string) (string, bool, error) {
	url := os.Getenv("AWS_ENDPOINT_URL_" + strings.ToUpper(strings.ReplaceAll(service, " ", "_")))
	return url, url != "", nil
}

// GetIgnoreConfiguredEndpoints tells whether endpoints are to be as AWS has them.
func (variables) GetIgnoreConfiguredEndpoints(context.Context) (bool, bool, error) {
	return flag("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"), true, nil
}

// GetUseFIPSEndpoint tells whether endpoints are to be those with certified cryptography.
func (variables) GetUseFIPSEndpoint(context.Context) (aws.FIPSEndpointState, bool, error) {
	if flag("AWS_USE_FIPS_ENDPOINT") {
		return aws.FIPSEndpointStateEnabled, true, nil
	}
	return aws.FIPSEndpointStateUnset, false, nil
}

// GetUseDualStackEndpoint tells whether endpoints are to be those that speak IPv6 too.
func (variables) GetUseDualStackEndpoint(context.Context) (aws.DualStackEndpointState, bool, error) {
	if flag("AWS_USE_DUALSTACK_ENDPOINT") {
		return aws.DualStackEndpointStateEnabled, true, nil
	}
	return aws.DualStackEndpointStateUnset, false, nil
}

func flag(name string) bool {
	set, err := strconv.ParseBool(os.Getenv(name))
	return err == nil && set
}
