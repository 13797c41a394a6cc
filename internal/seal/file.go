package seal

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// LoadOrCreate reads the data key in a file, and makes it if there is none. Processes that
// start at once agree on one key. A file that others may read is refused.
func LoadOrCreate(path string) ([32]byte, error) {
	key, err := load(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if err := create(path); err != nil && !errors.Is(err, fs.ErrExist) {
		return [32]byte{}, fmt.Errorf("make the key file %s: %w", path, err)
	}
	return load(path)
}

func load(path string) (key [32]byte, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return key, fmt.Errorf("read the key file: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return key, fmt.Errorf("the key file %s may be read by others; run: chmod 600 %s", path, path)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return key, fmt.Errorf("read the key file: %w", err)
	}
	if len(b) != len(key) {
		return key, fmt.Errorf("the key file %s holds %d bytes and not %d: it is damaged, or not a key file; restore it from a backup", path, len(b), len(key))
	}
	return [32]byte(b), nil
}

// create writes a new key beside path and links it there, which fails if another process
// was faster: the file is never seen half written.
func create(path string) error {
	var key [32]byte
	_, _ = rand.Read(key[:])                                // never fails
	tmp, err := os.CreateTemp(filepath.Dir(path), ".key-*") // made 0600
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(key[:])
	if err == nil {
		err = tmp.Sync()
	}
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return os.Link(tmp.Name(), path)
}
