package dynamostore

import (
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"holdfast/internal/store"
)

// failed says that a call failed. All of the SDK's errors but a condition's refusal mean
// that the store did not do its work, whoever is to blame. For what the owner has to put
// right it says what to do.
func (b *Backend) failed(err error) error {
	var missing *types.ResourceNotFoundException
	if errors.As(err, &missing) {
		return fmt.Errorf("%w: there is no DynamoDB table %s in this account and region; check the name, AWS_REGION and AWS_PROFILE: %w", store.ErrUnavailable, b.table, err)
	}
	var api smithy.APIError
	if errors.As(err, &api) {
		switch api.ErrorCode() {
		case "AccessDeniedException":
			return fmt.Errorf("%w: this AWS identity may not do that with the DynamoDB table %s: %w", store.ErrUnavailable, b.table, err)
		case "ExpiredTokenException", "UnrecognizedClientException":
			return fmt.Errorf("%w: AWS does not accept these credentials; log in again: %w", store.ErrUnavailable, err)
		}
	}
	return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
}
