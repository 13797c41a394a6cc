//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package presence

import (
	"errors"
	"os"
	"syscall"
)

// lock takes the lock of a file for its holder alone. It ends when the file is closed or the
// process ends. It is false while another open file has a lock, the holder's or a looker's.
func lock(f *os.File) (bool, error) { return flock(f, syscall.LOCK_EX) }

// free reports whether nobody holds a file's lock. Lookers share theirs, so that they do not
// take each other for the holder.
func free(f *os.File) (bool, error) { return flock(f, syscall.LOCK_SH) }

func flock(f *os.File, how int) (bool, error) {
	for {
		switch err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB); {
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
