package datakey

import (
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/aws/smithy-go"

	"holdfast/internal/store"
)

// failed says why KMS did not do something with the key that r names, and what to do
// about it. permission is what it takes to do it.
func (s Source) failed(what, permission string, r record, err error) error {
	var (
		disabled  *types.DisabledException
		state     *types.KMSInvalidStateException
		missing   *types.NotFoundException
		incorrect *types.IncorrectKeyException
		garbled   *types.InvalidCiphertextException
		usage     *types.InvalidKeyUsageException
		api       smithy.APIError
	)
	switch {
	case errors.As(err, &disabled):
		return fmt.Errorf("the KMS key %s is disabled: enable it, or no stored credential can be read", s.KMSKey)
	case errors.As(err, &state):
		return fmt.Errorf("the KMS key %s cannot be used: %s", s.KMSKey, state.ErrorMessage())
	case errors.As(err, &missing):
		return fmt.Errorf("there is no KMS key %s in this account and region: check HOLDFAST_KMS_KEY_ID, or the table's tag holdfast:kms-key", s.KMSKey)
	case errors.As(err, &usage):
		return fmt.Errorf("the KMS key %s does not encrypt: name a symmetric one", s.KMSKey)
	case errors.As(err, &incorrect), errors.As(err, &garbled):
		if r.Table != s.Table {
			return fmt.Errorf("the data key in table %s was made for table %s and opens there only: restore under that name", s.Table, r.Table)
		}
		return fmt.Errorf("the data key of table %s does not open with the KMS key %s: it was wrapped under %s", s.Table, s.KMSKey, r.KMSKey)
	case errors.As(err, &api) && api.ErrorCode() == "AccessDeniedException":
		return fmt.Errorf("this AWS identity may not %s the data key of table %s: it needs %s on the KMS key %s", what, s.Table, permission, s.KMSKey)
	}
	return fmt.Errorf("%s the data key: %w: %w", what, store.ErrUnavailable, err)
}
