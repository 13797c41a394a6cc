package dynamostore

import (
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/internal/store"
)

// Attributes. ttl, count and write are reserved words of DynamoDB's expressions, where all
// attributes therefore go by their names with a '#' before.
const (
	attrKey      = "pk"
	attrRevision = "revision"
	attrBody     = "body"
	attrExpires  = "expires_ms"
	attrTTL      = "ttl"
	attrCount    = "count"
	attrWrite    = "write"
)

type item = map[string]types.AttributeValue

func names(attrs ...string) map[string]string {
	m := make(map[string]string, len(attrs))
	for _, a := range attrs {
		m["#"+a] = a
	}
	return m
}

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

func primary(key store.Key) item {
	return item{attrKey: &types.AttributeValueMemberS{Value: prefix(key.Kind) + key.ID}}
}

func prefix(kind store.Kind) string { return string(kind) + "#" }

// newWrite draws the number of one Put. It only has to differ from those of others who
// write the same record in the same seconds.
func newWrite() []byte {
	b := make([]byte, 9)
	rand.Read(b) // never fails, as its documentation says
	return b
}

// seconds rounds up: DynamoDB must not tidy up before the instant.
func seconds(t time.Time) int64 {
	s := t.Unix()
	if t.Nanosecond() > 0 {
		s++
	}
	return s
}

// decode reads an item. The zero Record stands for none.
func decode(it item) (store.Record, error) {
	var r store.Record
	if len(it) == 0 {
		return r, nil
	}
	pk, _ := it[attrKey].(*types.AttributeValueMemberS)
	if pk == nil {
		return r, fmt.Errorf("decode record: no %s", attrKey)
	}
	kind, id, ok := strings.Cut(pk.Value, "#")
	if !ok {
		return r, fmt.Errorf("decode record: %s is no key of ours", attrKey)
	}
	r.Key = store.Key{Kind: store.Kind(kind), ID: id}
	var expires int64
	for name, to := range map[string]*int64{attrRevision: &r.Revision, attrCount: &r.Count, attrExpires: &expires} {
		n, ok := it[name].(*types.AttributeValueMemberN)
		if !ok {
			continue
		}
		var err error
		if *to, err = strconv.ParseInt(n.Value, 10, 64); err != nil {
			return store.Record{}, fmt.Errorf("decode record: %s: %w", name, err)
		}
	}
	if _, ok := it[attrExpires]; ok {
		r.ExpiresAt = time.UnixMilli(expires).UTC()
	}
	r.Body = binary(it, attrBody)
	return r, nil
}

func binary(it item, attr string) []byte {
	if b, ok := it[attr].(*types.AttributeValueMemberB); ok {
		return b.Value
	}
	return nil
}
