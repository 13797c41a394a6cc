package seal

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// LoadOrCreate reads the data key that is kept in a file, and makes one first if there is
// none; its directory must exist. Processes that start at the same time agree on one key.
// A file that is no key of ours, or that others can read, is left as it is and refused
// with what to do.
//
// A lost key file cannot be made again: what was sealed with it is lost too. Whoever has
// sealed values and finds no file should therefore return an error and not call this.
func LoadOrCreate(path string) ([KeySize]byte, error) {
	key, err := load(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if err := create(path); err != nil {
		return [KeySize]byte{}, fmt.Errorf("make the key file: %w", err)
	}
	return load(path) // ours, or that of whoever was first
}

func load(path string) (key [KeySize]byte, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrPermission) {
		return key, fmt.Errorf("the key file %s cannot be read: run holdfast as the user that owns it", path)
	}
	if err != nil {
		return key, fmt.Errorf("read the key file: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return key, fmt.Errorf("read the key file: %w", err)
	case !info.Mode().IsRegular():
		return key, fmt.Errorf("the key file %s is not a file: move it away, and put the key back if there was one", path)
	case info.Mode().Perm()&0o077 != 0:
		return key, fmt.Errorf("the key file %s can be used by other users: run chmod 600 '%s'", path, path)
	case info.Size() != KeySize:
		return key, fmt.Errorf("the key file %s is damaged: it has %d bytes in place of %d; put a copy of it back", path, info.Size(), KeySize)
	}
	if _, err := io.ReadFull(f, key[:]); err != nil {
		return [KeySize]byte{}, fmt.Errorf("read the key file %s: %w", path, err)
	}
	return key, nil
}

// create makes a key file unless there is one. The file gets its name when it is whole
// and on the disk, and never takes the name from another.
func create(path string) (err error) {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, ".key-*") // of mode 0600
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	var key [KeySize]byte
	rand.Read(key[:]) // never fails, as its documentation says
	_, err = f.Write(key[:])
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	}
	if d, derr := os.Open(dir); derr == nil { // the name must survive a loss of power too
		_ = d.Sync() // not every file system can
		_ = d.Close()
	}
	return nil
}
