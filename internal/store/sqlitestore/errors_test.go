package sqlitestore

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"
)

// TestIOTrouble is field case small-ones: SQLite says "disk I/O error" of a full disk where a
// file beside the store cannot grow. What to do is found by a try to write.
func TestIOTrouble(t *testing.T) {
	for want, tried := range map[string]error{
		"the disk is full: make room where /data is":  fmt.Errorf("write: %w", syscall.ENOSPC),
		"the data directory /data cannot be written":  &fs.PathError{Op: "open", Path: "/data/x", Err: syscall.EACCES},
		"does not take what is written":               errors.New("write: input/output error"),
		"look into the system's log for what it says": nil,
	} {
		if got := ioTrouble("/data", tried); !strings.Contains(got, want) {
			t.Errorf("%v: got %q, want in it %q", tried, got, want)
		}
	}
	if got := ioTrouble("/data", syscall.EDQUOT); !strings.Contains(got, "the disk is full") {
		t.Errorf("a quota: got %q", got)
	}
	if err := tryWrite(t.TempDir()); err != nil {
		t.Errorf("a directory with room: got %v", err)
	}
	if err := tryWrite("/proc"); err == nil {
		t.Error("a directory that takes nothing: got no error")
	}
}
