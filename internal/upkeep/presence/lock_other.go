//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package presence

import (
	"errors"
	"os"
)

// lock and free need a lock that ends with its process, which this system does not have here:
// nothing is known of other processes.
func lock(*os.File) (bool, error) { return false, errors.ErrUnsupported }

func free(*os.File) (bool, error) { return false, errors.ErrUnsupported }
