// Package profile opens a holdfast in AWS under the AWS identity of whoever runs it, for
// the command: as the environment, a profile, an SSO login or a machine's role gives it,
// and with region and endpoints from where the AWS SDK looks for them.
//
// Naming the table is enough. The KMS key that wraps its data key is in
// HOLDFAST_KMS_KEY_ID or, else, in the table's tag holdfast:kms-key.
package profile

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/logging"

	"holdfast/internal/cloud"
)

// Tag is the tag of a table whose value is the id, ARN or alias of its KMS key.
const Tag = "holdfast:kms-key"

// Open returns a table, with credentials that were found and not yet used. The caller's
// context bounds the search for them, which may ask an identity service.
func Open(ctx context.Context, table string) (*cloud.Table, error) {
	cfg, err := config.LoadDefaultConfig(ctx, config.WithLogger(logging.Nop{})) // what matters comes as an error
	if err != nil {
		return nil, fmt.Errorf("read the AWS configuration: %w", err)
	}
	if cfg.Region == "" {
		return nil, errors.New("no AWS region is configured: set AWS_REGION, or AWS_PROFILE to a profile that has one")
	}
	// A call to the table has to end soon. Finding out who we are, as over SSO, may take
	// longer, and is done here once.
	if _, err := cfg.Credentials.Retrieve(ctx); err != nil {
		return nil, fmt.Errorf("no AWS credentials were found: log in (aws sso login), or set AWS_PROFILE: %w", err)
	}
	var opened *cloud.Table
	opened = cloud.Open(cfg, table, func(ctx context.Context) (string, error) {
		return kmsKey(ctx, opened.Client, table)
	})
	return opened, nil
}

func kmsKey(ctx context.Context, client *dynamodb.Client, table string) (string, error) {
	if id := os.Getenv("HOLDFAST_KMS_KEY_ID"); id != "" {
		return id, nil
	}
	none := fmt.Errorf("which KMS key wraps the data key of table %s is not known: set HOLDFAST_KMS_KEY_ID, or tag the table with %s", table, Tag)
	described, err := client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &table})
	var missing *types.ResourceNotFoundException
	if errors.As(err, &missing) {
		return "", fmt.Errorf("there is no DynamoDB table %s in this account and region; check the name, AWS_REGION and AWS_PROFILE", table)
	}
	if err != nil {
		return "", fmt.Errorf("%w (reading the tag: %w)", none, err)
	}
	in := &dynamodb.ListTagsOfResourceInput{ResourceArn: described.Table.TableArn}
	for {
		tags, err := client.ListTagsOfResource(ctx, in)
		if err != nil {
			return "", fmt.Errorf("%w (reading the tag: %w)", none, err)
		}
		for _, tag := range tags.Tags {
			if aws.ToString(tag.Key) == Tag && aws.ToString(tag.Value) != "" {
				return *tag.Value, nil
			}
		}
		if in.NextToken = tags.NextToken; in.NextToken == nil {
			return "", none
		}
	}
}
