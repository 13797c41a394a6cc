// Package profile opens a holdfast in AWS under the AWS identity of whoever runs it, for
// the command: as the environment, a profile, an SSO login or a machine's role gives it,
// and with region and endpoints from where the AWS SDK looks for them.
//
// Naming the table is enough. The KMS key that wraps its data key is in
// HOLDFAST_KMS_KEY_ID or, else, in the table's tag holdfast:kms-key.
//
// Errors are for that person: one sentence that says what is wrong with their table, their
// login or their network, with what the SDK says of it beneath. It never asks for anything
// at a terminal.
package profile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/smithy-go/logging"

	"holdfast/internal/aws/cloud"
	"holdfast/internal/aws/cloudwatch"
	"holdfast/internal/store/seal"
)

const (
	// Tag is the tag of a table whose value is the id, ARN or alias of its KMS key.
	Tag = "holdfast:kms-key"
	// SilenceTag is the tag whose value is the name of the alarm about a silent poller.
	SilenceTag = "holdfast:poller-alarm"
)

// Table is a table whose errors are worded as this package words them.
type Table struct {
	*cloud.Table
	cfg   aws.Config
	named named
}

// Open returns a table, with credentials that were found and not yet used. The caller's
// context bounds the search for them, which may ask an identity service.
func Open(ctx context.Context, table string) (*Table, error) {
	cfg, err := config.LoadDefaultConfig(ctx, config.WithLogger(logging.Nop{})) // what matters comes as an error
	if err != nil {
		return nil, unreadable(err)
	}
	if cfg.Region == "" {
		return nil, errors.New("no AWS region is configured: set AWS_REGION, or AWS_PROFILE to a profile that has one")
	}
	t := &Table{cfg: cfg, named: named{table: table, region: cfg.Region}}
	found, who := cfg.Credentials, identityOf(cfg)
	t.cfg.Credentials = aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
		if found == nil {
			return aws.Credentials{}, who.unknown(errors.New("none are configured"))
		}
		c, err := found.Retrieve(ctx)
		if err != nil {
			err = who.unknown(err)
		}
		return c, err
	})
	// A call to the table has to end soon. Finding out who we are, as over SSO, may take
	// longer, and is done here once.
	if _, err := t.cfg.Credentials.Retrieve(ctx); err != nil {
		return nil, err
	}
	t.Table = cloud.Open(t.cfg, table, t.kmsKey)
	t.Backend = explained{t.Backend, t.named}
	return t, nil
}

// Box returns the box of the table's data key, as cloud.Table does.
func (t *Table) Box(ctx context.Context) (*seal.Box, error) {
	box, err := t.Table.Box(ctx)
	return box, t.named.explain(err)
}

// RemoveAlarm removes the alarm of an account, as cloudwatch.Watch does.
func (t *Table) RemoveAlarm(ctx context.Context, account string) error {
	return t.named.left(cloudwatch.New(t.cfg, t.named.table, "", "").RemoveAlarm(ctx, account), account)
}

// HearSilence turns on the alarm about a poller that has never made a round, as
// cloudwatch.Watch does, where the table's tags name one. Whoever may not read the tags
// hears nothing of it: few commands need them.
func (t *Table) HearSilence(ctx context.Context, now time.Time) (bool, error) {
	name, err := t.tag(ctx, SilenceTag)
	if err != nil || name == "" {
		return false, nil //nolint:nilerr // see above
	}
	return cloudwatch.New(t.cfg, t.named.table, "", name).HearSilence(ctx, now)
}

// Environment is what a function finds in its environment where it is to open this table
// as whoever runs this: package cloud reads it. Credentials may end, and then are not
// renewed there.
func (t *Table) Environment(ctx context.Context) ([]string, error) {
	held, err := t.cfg.Credentials.Retrieve(ctx)
	if err != nil {
		return nil, err
	}
	key, err := t.kmsKey(ctx)
	if err != nil {
		return nil, err
	}
	env := []string{
		"HOLDFAST_TABLE=" + t.named.table, "HOLDFAST_KMS_KEY_ID=" + key, "AWS_REGION=" + t.cfg.Region,
		"AWS_ACCESS_KEY_ID=" + held.AccessKeyID, "AWS_SECRET_ACCESS_KEY=" + held.SecretAccessKey, "AWS_SESSION_TOKEN=" + held.SessionToken,
	}
	for name, url := range map[string]*string{
		"AWS_ENDPOINT_URL_DYNAMODB": t.Client.Options().BaseEndpoint, "AWS_ENDPOINT_URL_KMS": kms.NewFromConfig(t.cfg).Options().BaseEndpoint,
	} {
		if url != nil {
			env = append(env, name+"="+*url)
		}
	}
	return env, nil
}

func (t *Table) kmsKey(ctx context.Context) (string, error) {
	if id := os.Getenv("HOLDFAST_KMS_KEY_ID"); id != "" {
		return id, nil
	}
	id, err := t.tag(ctx, Tag)
	if err == nil && id == "" {
		err = fmt.Errorf("which KMS key wraps the data key of table %s is not known: set HOLDFAST_KMS_KEY_ID, or tag the table with %s", t.named.table, Tag)
	}
	return id, err
}

// tag is the value of a tag of the table; empty where it has no such tag.
func (t *Table) tag(ctx context.Context, key string) (string, error) {
	described, err := t.Client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &t.named.table})
	if err != nil {
		return "", t.named.untold(err)
	}
	in := &dynamodb.ListTagsOfResourceInput{ResourceArn: described.Table.TableArn}
	for {
		tags, err := t.Client.ListTagsOfResource(ctx, in)
		if err != nil {
			return "", t.named.untold(err)
		}
		for _, tag := range tags.Tags {
			if aws.ToString(tag.Key) == key {
				return aws.ToString(tag.Value), nil
			}
		}
		if in.NextToken = tags.NextToken; in.NextToken == nil {
			return "", nil
		}
	}
}
