package sqlitestore

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// lookEvery is how often, at most, the file's name is looked up. Within that time and a
// call, a file that was removed or replaced is noticed.
const lookEvery = time.Second

// place is where the file that is in use was, and whether it is still there.
type place struct {
	path   string
	file   fs.FileInfo
	looked time.Time
	gone   error // nil while the name is the file's
}

// settle remembers the file that has just been opened.
func (p *place) settle(path string, now time.Time) (err error) {
	p.path, p.looked = path, now
	p.file, err = os.Stat(path)
	return err
}

// due reports whether look has something to tell, or would use the disk.
func (p *place) due(now time.Time) bool { return p.gone != nil || now.Sub(p.looked) >= lookEvery }

// look describes a file that is gone, by its last look or a new one. What is
// in the file's place is never used, nor made: an open file goes on working without its
// name, and would keep what no other process will ever find.
func (p *place) look(now time.Time) error {
	if now.Sub(p.looked) < lookEvery {
		return p.gone
	}
	p.looked = now
	info, err := os.Stat(p.path)
	switch {
	case err == nil && os.SameFile(info, p.file):
		p.gone = nil
	case err == nil:
		p.gone = &trouble{what: wentAway(p.path, "replaced")}
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		p.gone = &trouble{what: wentAway(p.path, "removed")}
	default: // not to be seen is not to be gone
		p.gone = nil
	}
	return p.gone
}

func wentAway(path, how string) string {
	return path + " was " + how + " while it was in use: put the right one there, and restart holdfast"
}

// leave ends the use of a file that went away. SQLite does not tidy up beside such a file,
// and its log, if it is still there, would be taken for that of the file now in its place.
// So the log's content goes to where it belongs.
func (b *Backend) leave(now time.Time) {
	b.place.looked = time.Time{}
	if b.place.look(now) != nil {
		_ = b.exec("PRAGMA wal_checkpoint(TRUNCATE)") // there is nobody left who needs it
	}
}

// inPlace calls f if the file is where it was.
func inPlace[T any](b *Backend, f func() (T, error)) (T, error) {
	if err := b.place.look(time.Now()); err != nil {
		var none T
		return none, err
	}
	return f()
}
