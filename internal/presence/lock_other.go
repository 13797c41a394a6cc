//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package presence

import (
	"errors"
	"os"
)

// lock is not there on this system: nothing can be told of others.
func lock(*os.File) (bool, error) { return false, errors.ErrUnsupported }
