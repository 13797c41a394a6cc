//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package presence

import (
	"errors"
	"os"
	"syscall"
)

// lock takes the lock of a file, which ends when the file is closed or its process ends; it
// is false where another file has it.
func lock(f *os.File) (bool, error) {
	for {
		switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
		case err == nil:
			return true, nil
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		default:
			return false, err
		}
	}
}
