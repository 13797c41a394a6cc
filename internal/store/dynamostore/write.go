package dynamostore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/internal/store"
)

// Put implements store.Backend.
func (b *Backend) Put(ctx context.Context, r store.Record, cond store.Condition) (store.Record, error) {
	if size := Size(r); size > largestItem {
		return store.Record{}, fmt.Errorf("%w: the record %s of %s has grown to %d KB, more than an item of DynamoDB may have; please report it", store.ErrUnavailable, r.Kind, r.ID, size>>10)
	}
	ctx, cancel := within(ctx)
	defer cancel()
	write, call := newWrite(), b.call(false)
	out, err := b.client.UpdateItem(ctx, b.update(r, cond, write), call.use)
	if err == nil {
		written, err := decode(out.Attributes)
		if err != nil {
			return store.Record{}, b.failed(err)
		}
		return written, nil
	}
	var refused *types.ConditionalCheckFailedException
	if !errors.As(err, &refused) {
		return store.Record{}, b.failed(err)
	}
	stored, err := decode(refused.Item)
	if err != nil {
		return store.Record{}, b.failed(err)
	}
	if bytes.Equal(binary(refused.Item, attrWrite), write) {
		return stored, nil // an earlier attempt of this call
	}
	if call.unsure && !provesOthers(refused.Item, stored, cond) {
		return store.Record{}, fmt.Errorf("%w: a write that got no answer may have been applied, and the record has changed since", store.ErrUnavailable)
	}
	return stored, store.ErrConflict
}

// update is a Put in DynamoDB's words.
func (b *Backend) update(r store.Record, cond store.Condition, write []byte) *dynamodb.UpdateItemInput {
	body := r.Body
	if body == nil {
		body = []byte{}
	}
	values := item{
		":zero": number(0), ":one": number(1),
		":body":  &types.AttributeValueMemberB{Value: body},
		":write": &types.AttributeValueMemberB{Value: write},
	}
	set := []string{"#revision = if_not_exists(#revision, :zero) + :one", "#body = :body", "#write = :write"}
	var remove []string
	instant := func(attr string, at time.Time, n int64) {
		if at.IsZero() {
			remove = append(remove, "#"+attr)
			return
		}
		set = append(set, "#"+attr+" = :"+attr)
		values[":"+attr] = number(n)
	}
	instant(attrExpires, r.ExpiresAt, r.ExpiresAt.UnixMilli())
	instant(attrTTL, r.DeleteAfter, seconds(r.DeleteAfter))
	update := "SET " + strings.Join(set, ", ")
	if len(remove) > 0 {
		update += " REMOVE " + strings.Join(remove, ", ")
	}

	condition := "attribute_not_exists(#revision)"
	if cond.Revision != 0 {
		condition = "#revision = :revision"
		values[":revision"] = number(cond.Revision)
	}
	if !cond.ExpiredBy.IsZero() {
		condition += " OR #expires_ms <= :by"
		values[":by"] = number(cond.ExpiredBy.UnixMilli())
	}
	return &dynamodb.UpdateItemInput{
		TableName: &b.table, Key: primary(r.Key),
		UpdateExpression: &update, ConditionExpression: &condition,
		ExpressionAttributeNames:            names(attrRevision, attrBody, attrExpires, attrTTL, attrWrite),
		ExpressionAttributeValues:           values,
		ReturnValues:                        types.ReturnValueAllNew,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

// provesOthers reports whether a record that refused a repeated Put, and does not bear its
// number, shows that no earlier attempt was applied: that would have made the revision
// one more than the condition's at least, and whoever came after it one more still.
func provesOthers(it item, stored store.Record, cond store.Condition) bool {
	return len(it) > 0 && stored.Revision <= cond.Revision+1
}

// Add implements store.Backend.
func (b *Backend) Add(ctx context.Context, key store.Key, limit int64) (int64, error) {
	ctx, cancel := within(ctx)
	defer cancel()
	in := &dynamodb.UpdateItemInput{
		TableName: &b.table, Key: primary(key),
		UpdateExpression:         aws.String("ADD #count :one"),
		ExpressionAttributeNames: names(attrCount), ExpressionAttributeValues: item{":one": number(1)},
		ReturnValues:                        types.ReturnValueUpdatedNew,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if limit > 0 {
		in.ConditionExpression = aws.String("attribute_not_exists(#count) OR #count < :limit")
		in.ExpressionAttributeValues[":limit"] = number(limit)
	}
	out, err := b.client.UpdateItem(ctx, in, b.call(true).use)
	var refused *types.ConditionalCheckFailedException
	switch {
	case err == nil:
		return b.counted(out.Attributes, nil)
	case errors.As(err, &refused):
		return b.counted(refused.Item, store.ErrConflict)
	}
	return 0, b.failed(err)
}

// counted returns the count of an item, with the error that belongs to it.
func (b *Backend) counted(it item, outcome error) (int64, error) {
	n, ok := it[attrCount].(*types.AttributeValueMemberN)
	if !ok {
		return 0, b.failed(fmt.Errorf("decode record: no %s", attrCount))
	}
	count, err := strconv.ParseInt(n.Value, 10, 64)
	if err != nil {
		return 0, b.failed(fmt.Errorf("decode record: %s: %w", attrCount, err))
	}
	return count, outcome
}

// Delete implements store.Backend.
func (b *Backend) Delete(ctx context.Context, key store.Key, revision int64) error {
	ctx, cancel := within(ctx)
	defer cancel()
	in := &dynamodb.DeleteItemInput{
		TableName: &b.table, Key: primary(key),
		ConditionExpression:      aws.String("attribute_not_exists(#revision)"),
		ExpressionAttributeNames: names(attrRevision),
	}
	if revision != 0 {
		in.ConditionExpression = aws.String("attribute_not_exists(#pk) OR #revision = :revision")
		in.ExpressionAttributeNames = names(attrKey, attrRevision)
		in.ExpressionAttributeValues = item{":revision": number(revision)}
	}
	_, err := b.client.DeleteItem(ctx, in, b.call(true).use)
	var refused *types.ConditionalCheckFailedException
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused):
		return store.ErrConflict
	}
	return b.failed(err)
}
