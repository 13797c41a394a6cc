// Package presence tells processes of one machine whether another of them still lives.
//
// A process that begins something which nobody else may repeat while it lives announces
// itself under a name, by a locked file in a directory that all of them use. The system ends
// the lock with the process, however that ends: killed, crashed, or with the machine. One
// that is merely stopped, or asleep, keeps it. So a free lock proves that its holder is gone,
// and a held one that it is not. A name without a file proves nothing: its holder may be on
// another machine.
//
// The files have no content. One that was left by a process that is gone is removed a day
// later, by whoever announces itself then.
package presence

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Standing is how another process stands.
type Standing int

const (
	// Unknown: nothing can be told from here.
	Unknown Standing = iota
	// Here: it lives on this machine, though it may be stopped.
	Here
	// Gone: it was on this machine, and has ended.
	Gone
)

// suffix ends the names of the files.
const suffix = ".lock"

// staleAfter is how old the file of a process that is gone is when it is removed. Whatever
// that process left unfinished is taken over long before.
const staleAfter = 24 * time.Hour

// Directory is where the processes of a machine announce themselves. It is safe for use by
// several goroutines.
type Directory struct {
	path string

	mu   sync.Mutex
	held map[string]*os.File
}

// In returns the directory of a path, which is made when somebody announces himself.
func In(path string) *Directory { return &Directory{path: path, held: map[string]*os.File{}} }

// Announce has others see that this process lives, under a name of letters and digits that
// no other has, until the process ends or Leave is called. Announcing again changes nothing.
func (d *Directory) Announce(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.held[name] != nil {
		return nil
	}
	if !valid(name) {
		return errors.New("announce a process: its name is no file's")
	}
	if err := os.MkdirAll(d.path, 0o700); err != nil {
		return fmt.Errorf("announce a process: %w", err)
	}
	d.tidy()
	f, err := announce(d.file(name))
	if err != nil {
		return fmt.Errorf("announce a process: %w", err)
	}
	d.held[name] = f
	return nil
}

// errLooked: another process looked at the file at the instant at which it was to be locked.
var errLooked = errors.New("the lock of its new file is taken: another process was looking at it")

// announce makes a file and locks it. Between the two another process may look at the file,
// which has a shared lock of it for that instant; the file is then made once more.
func announce(file string) (*os.File, error) {
	f, err := makeLocked(file)
	if errors.Is(err, errLooked) {
		return makeLocked(file)
	}
	return f, err
}

func makeLocked(file string) (*os.File, error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	ours, err := lock(f)
	switch {
	case err != nil:
		err = fmt.Errorf("lock %s: %w", file, err)
	case !ours:
		err = errLooked
	default:
		return f, nil
	}
	return nil, errors.Join(err, f.Close(), os.Remove(file))
}

// Leave ends Announce.
func (d *Directory) Leave(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.held[name]
	if f == nil {
		return nil
	}
	delete(d.held, name)
	return errors.Join(os.Remove(f.Name()), f.Close())
}

// Look tells how the process stands that announced itself under a name.
func (d *Directory) Look(name string) Standing {
	d.mu.Lock()
	ours := d.held[name] != nil
	d.mu.Unlock()
	switch {
	case ours:
		return Here
	case !valid(name):
		return Unknown
	}
	return look(d.file(name))
}

func look(file string) Standing {
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return Unknown
	}
	defer f.Close() // which ends the lock
	switch gone, err := free(f); {
	case err != nil:
		return Unknown
	case gone:
		return Gone
	}
	return Here
}

// tidy removes the files that processes left long ago. What cannot be removed stays.
func (d *Directory) tidy() {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return
	}
	for _, e := range entries {
		info, err := e.Info()
		file := filepath.Join(d.path, e.Name())
		if err == nil && strings.HasSuffix(e.Name(), suffix) && time.Since(info.ModTime()) > staleAfter && look(file) == Gone {
			_ = os.Remove(file)
		}
	}
}

func (d *Directory) file(name string) string { return filepath.Join(d.path, name+suffix) }

// valid keeps names within the directory: they come from a store.
func valid(name string) bool {
	return name != "" && len(name) <= 64 && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
}
