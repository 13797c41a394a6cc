package profile

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/processcreds"
	"github.com/aws/smithy-go"

	"holdfast/internal/core/alarm"
	"holdfast/internal/store"
)

// problem is an error in words for a person. What it was made of stays beneath, for those
// who ask whether the store was unavailable.
type problem struct {
	says  string
	cause error
}

func (p problem) Error() string { return p.says }
func (p problem) Unwrap() error { return p.cause }

func says(cause error, format string, args ...any) error {
	return problem{says: oneLine(fmt.Sprintf(format, args...)), cause: cause}
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// named is what the sentences are about.
type named struct{ table, region string }

// Codes that AWS's services share.
var (
	expired     = []string{"ExpiredTokenException", "ExpiredToken", "RequestExpired"}
	notAccepted = []string{"UnrecognizedClientException", "InvalidSignatureException", "InvalidClientTokenId", "IncompleteSignatureException", "MissingAuthenticationTokenException", "SignatureDoesNotMatch"}
	denied      = []string{"AccessDeniedException", "AccessDenied"}
	throttled   = []string{"ThrottlingException", "ProvisionedThroughputExceededException", "RequestLimitExceeded", "LimitExceededException"}
)

// explain says what an error of a call is about. What is told well already stays as it is.
func (n named) explain(err error) error {
	var told problem
	if err == nil || errors.Is(err, store.ErrConflict) {
		return err
	}
	if errors.As(err, &told) { // such as a login that ended: what the SDK was about to do does not matter
		return problem{told.says, err}
	}
	service, operation := "AWS", ""
	var op *smithy.OperationError
	if errors.As(err, &op) {
		service, operation = op.Service(), op.Operation()
	}
	var api smithy.APIError
	var garbled *smithy.DeserializationError
	switch {
	case errors.As(err, &garbled) || errors.As(err, &api) && api.ErrorCode() == "UnknownError":
		return says(err, "what answers for %s does not speak as %[1]s does: check AWS_ENDPOINT_URL and your network", service)
	case api == nil:
		return n.unanswered(service, err)
	}
	code := api.ErrorCode()
	switch {
	case code == "ResourceNotFoundException" && service == "DynamoDB":
		return says(err, "there is no DynamoDB table %s in region %s of this AWS account: check --table, AWS_REGION and AWS_PROFILE", n.table, n.region)
	case slices.Contains(denied, code):
		return says(err, "AWS does not let you use table %s: this identity needs %s:%s on it (%s)", n.table, strings.ToLower(service), operation, api.ErrorMessage())
	case slices.Contains(expired, code):
		return says(err, "the AWS credentials have expired: log in again (aws sso login), or renew those in your environment")
	case slices.Contains(notAccepted, code):
		return says(err, "AWS does not accept these credentials in region %s: check AWS_PROFILE, the keys in your environment and this machine's clock (%s)", n.region, api.ErrorMessage())
	case slices.Contains(throttled, code):
		return says(err, "%s is throttling requests for table %s: try again in a moment", service, n.table)
	case code == "ValidationException" && service == "DynamoDB":
		return says(err, "the DynamoDB table %s is not one of holdfast's: name another with --table (%s)", n.table, api.ErrorMessage())
	}
	return says(err, "%s could not do %s for table %s: %s (%s); try again", service, operation, n.table, api.ErrorMessage(), code)
}

// unanswered says why there was no answer.
func (n named) unanswered(service string, err error) error {
	var sent *url.Error
	if !errors.As(err, &sent) {
		if errors.Is(err, context.DeadlineExceeded) {
			return says(err, "%s did not answer in time: check your network, AWS_REGION (%s) and AWS_ENDPOINT_URL", service, n.region)
		}
		return err
	}
	at := sent.URL
	if u, err := url.Parse(sent.URL); err == nil && u.Host != "" {
		at = u.Scheme + "://" + u.Host
	}
	reason := sent.Err.Error()
	var name *net.DNSError
	var op *net.OpError
	switch {
	case errors.As(err, &name):
		reason = "no such host"
	case sent.Timeout(), errors.Is(err, context.DeadlineExceeded):
		reason = "no answer in time"
	case errors.As(err, &op):
		reason = op.Err.Error()
	}
	return says(err, "%s cannot be reached at %s (%s): check your network, AWS_REGION (%s) and AWS_ENDPOINT_URL", service, at, reason, n.region)
}

// untold says why the table's tag could not be read.
func (n named) untold(err error) error {
	var api smithy.APIError
	if errors.As(err, &api) && slices.Contains(denied, api.ErrorCode()) {
		return says(err, "which KMS key wraps the data key of table %s cannot be looked up: set HOLDFAST_KMS_KEY_ID, or let this identity do dynamodb:DescribeTable and dynamodb:ListTagsOfResource on the table (%s)",
			n.table, api.ErrorMessage())
	}
	return n.explain(err)
}

// left says why an account's alarms could not be removed.
func (n named) left(err error, account string) error {
	var api smithy.APIError
	if errors.As(err, &api) && slices.Contains(denied, api.ErrorCode()) {
		return says(err, "AWS does not let you remove the alarms of account %s: this identity needs cloudwatch:DeleteAlarms on %s* (%s)",
			account, alarm.Prefix(n.table), api.ErrorMessage())
	}
	return n.explain(err)
}

// unreadable says what is wrong with the owner's AWS configuration.
func unreadable(err error) error {
	var profile config.SharedConfigProfileNotExistError
	var code config.AssumeRoleTokenProviderNotSetError
	var role config.SharedConfigAssumeRoleError
	var file config.SharedConfigLoadError
	switch {
	case errors.As(err, &role):
		return says(err, "an AWS profile assumes a role as profile %s, which does not exist: check source_profile in ~/.aws/config", role.Profile)
	case errors.As(err, &profile):
		return says(err, "there is no AWS profile %s: set AWS_PROFILE to one of yours; aws configure list-profiles shows them", profile.Profile)
	case errors.As(err, &code):
		return says(err, `this AWS profile asks for an MFA code, and holdfast never asks: log in before, with eval "$(aws configure export-credentials --profile NAME --format env)"`)
	case errors.As(err, &file):
		return says(err, "the AWS configuration in %s cannot be read: %v", file.Filename, file.Err)
	}
	return says(err, "the AWS configuration cannot be read: %v", err)
}

// identity is who the configuration says we are.
type identity struct {
	profile, region string
	sso             bool
}

func identityOf(cfg aws.Config) identity {
	who := identity{region: cfg.Region}
	for _, source := range cfg.ConfigSources {
		if shared, ok := source.(config.SharedConfig); ok {
			who.profile = shared.Profile
			who.sso = who.sso || ssoOf(&shared)
		}
	}
	return who
}

// ssoOf reports whether a profile, or the one whose role it assumes from, logs in over SSO.
func ssoOf(shared *config.SharedConfig) bool {
	for ; shared != nil; shared = shared.Source {
		if shared.SSOSessionName != "" || shared.SSOStartURL != "" {
			return true
		}
	}
	return false
}

// unknown says why no credentials could be had.
func (who identity) unknown(err error) error {
	var told problem
	var sent *url.Error
	var api smithy.APIError
	var program *processcreds.ProviderError
	var op *smithy.OperationError
	switch {
	case errors.As(err, &told):
		return err
	case errors.As(err, &program):
		return says(err, "the credential_process of AWS profile %s gave no credentials: %v", who.profile, program.Err)
	case errors.As(err, &op) && op.Service() == "ec2imds":
		return says(err, "no AWS credentials were found: set AWS_PROFILE to a profile of yours, log in (aws sso login), or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
	case errors.As(err, &sent) || errors.Is(err, context.DeadlineExceeded):
		service := "AWS"
		if op != nil {
			service = op.Service()
		}
		return named{region: who.region}.unanswered(service, err)
	case who.sso && !(errors.As(err, &api) && api.ErrorCode() == "ForbiddenException"): // which is about the role
		return says(err, "the AWS SSO session of profile %s has ended, or there was none: aws sso login --profile %[1]s", who.profile)
	case errors.As(err, &api):
		return says(err, "AWS gives profile %s no credentials: %s (%s)", who.profile, api.ErrorMessage(), api.ErrorCode())
	}
	return says(err, "no AWS credentials were found: log in (aws sso login), or set AWS_PROFILE (%v)", err)
}

// explained is a backend whose errors are told as this package does.
type explained struct {
	store.Backend
	named named
}

func (b explained) Get(ctx context.Context, keys []store.Key) ([]store.Record, error) {
	found, err := b.Backend.Get(ctx, keys)
	return found, b.named.explain(err)
}

func (b explained) Put(ctx context.Context, r store.Record, cond store.Condition) (store.Record, error) {
	stored, err := b.Backend.Put(ctx, r, cond)
	return stored, b.named.explain(err)
}

func (b explained) Add(ctx context.Context, key store.Key, limit int64) (int64, error) {
	n, err := b.Backend.Add(ctx, key, limit)
	return n, b.named.explain(err)
}

func (b explained) Delete(ctx context.Context, key store.Key, revision int64) error {
	return b.named.explain(b.Backend.Delete(ctx, key, revision))
}

func (b explained) List(ctx context.Context, kind store.Kind) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		for r, err := range b.Backend.List(ctx, kind) {
			if !yield(r, b.named.explain(err)) {
				return
			}
		}
	}
}
