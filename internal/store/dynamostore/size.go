package dynamostore

import (
	"strconv"

	"holdfast/internal/store"
)

// largestItem is the most that an item may weigh, in bytes.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
const largestItem = 400 << 10

// Size is what the item of a record weighs in bytes, by which DynamoDB charges: names and
// values, where a number has a byte for each two digits and one more. ttl is counted where
// there is an expiry, since that is where it is written.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
func Size(r store.Record) int {
	size := len(attrKey) + len(prefix(r.Kind)) + len(r.ID)
	if r.Revision > 0 {
		size += len(attrRevision) + numberSize(r.Revision) + len(attrBody) + len(r.Body) + len(attrWrite) + len(newWrite())
	}
	if !r.ExpiresAt.IsZero() {
		size += len(attrExpires) + numberSize(r.ExpiresAt.UnixMilli()) + len(attrTTL) + numberSize(r.ExpiresAt.Unix())
	}
	if r.Count > 0 {
		size += len(attrCount) + numberSize(r.Count)
	}
	return size
}

func numberSize(n int64) int { return (len(strconv.FormatInt(n, 10))+1)/2 + 1 }
