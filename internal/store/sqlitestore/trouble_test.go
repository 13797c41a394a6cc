package sqlitestore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/internal/store"
	"holdfast/internal/store/sqlitestore"
)

func TestDiskFull(t *testing.T) {
	b := open(t, t.TempDir())
	defer b.Close()
	must(t, b.Exec(t.Context(), "PRAGMA max_page_count=20"))
	small := store.Record{Key: store.Key{Kind: store.KindPin, ID: "small"}, Body: []byte("x")}
	if _, err := b.Put(t.Context(), small, store.Condition{}); err != nil {
		t.Fatal(err)
	}
	large := store.Record{Key: store.Key{Kind: store.KindPin, ID: "large"}, Body: bytes.Repeat([]byte("x"), 200_000)}
	_, err := b.Put(t.Context(), large, store.Condition{})
	if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "the disk is full: make room") {
		t.Errorf("got %v, want ErrUnavailable, and what to do", err)
	}
	found, err := b.Get(t.Context(), []store.Key{small.Key, large.Key})
	if err != nil || len(found) != 1 || found[0].Key != small.Key {
		t.Errorf("got %d records and error %v, want the small one alone", len(found), err)
	}
	must(t, b.Exec(t.Context(), "PRAGMA max_page_count=1000"))
	if _, err := b.Put(t.Context(), large, store.Condition{}); err != nil {
		t.Errorf("with room again: got %v, want no error", err)
	}
}

func TestDamagedFile(t *testing.T) {
	dir := t.TempDir()
	b := open(t, dir)
	for i := range 100 {
		r := store.Record{Key: store.Key{Kind: store.KindPin, ID: fmt.Sprint(i)}, Body: bytes.Repeat([]byte("x"), 1000)}
		if _, err := b.Put(t.Context(), r, store.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	must(t, b.Close())
	path := filepath.Join(dir, sqlitestore.File)
	data, err := os.ReadFile(path)
	must(t, err)
	for i := 2 * 4096; i < len(data); i++ { // all but the first pages
		data[i] = 0xaa
	}
	must(t, os.WriteFile(path, data, 0o600))

	b = open(t, dir)
	defer b.Close()
	_, err = b.Get(t.Context(), []store.Key{{Kind: store.KindPin, ID: "50"}})
	if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), path+" is damaged") {
		t.Errorf("got %v, want ErrUnavailable, and what to do", err)
	}
}

// A disk can keep a call waiting for as long as it likes.
func TestStalledDisk(t *testing.T) {
	b := open(t, t.TempDir())
	defer b.Close()
	key := store.Key{Kind: store.KindPin, ID: "x"}
	ctx, cancel := context.WithCancel(t.Context())
	begun, release, returned := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		returned <- b.Hold(ctx, func() { close(begun); <-release })
	}()
	<-begun
	cancel()
	if err := <-returned; !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("the stalled call: got %v, want ErrUnavailable and Canceled", err)
	}
	soon, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	for name, call := range map[string]func() error{
		"get": func() error { _, err := b.Get(soon, []store.Key{key}); return err },
		"add": func() error { _, err := b.Add(soon, key, 0); return err },
	} {
		if err := call(); !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s behind it: got %v, want ErrUnavailable and DeadlineExceeded", name, err)
		}
	}
	close(release)
	if n, err := b.Add(t.Context(), key, 0); n != 1 || err != nil {
		t.Errorf("afterwards: got %d and error %v, want 1 and none", n, err)
	}
}

func TestFailedWriteIsUndone(t *testing.T) {
	b := open(t, t.TempDir())
	defer b.Close()
	r, err := b.Put(t.Context(), store.Record{Key: store.Key{Kind: store.KindPin, ID: "x"}, Body: []byte("before")}, store.Condition{})
	must(t, err)
	next := r
	next.Body = []byte("after")
	cause := errors.New("the disk went away")
	if err := b.FailAfter(t.Context(), next, cause); !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, cause) {
		t.Errorf("got %v, want ErrUnavailable and its cause", err)
	}
	found, err := b.Get(t.Context(), []store.Key{r.Key})
	if err != nil || len(found) != 1 || string(found[0].Body) != "before" || found[0].Revision != 1 {
		t.Errorf("got %v and error %v, want what was there before", found, err)
	}
	if _, err := b.Put(t.Context(), next, store.Condition{Revision: 1}); err != nil {
		t.Errorf("the next write: got %v, want no error", err)
	}
}

func TestWhatIsFlushed(t *testing.T) {
	b := open(t, t.TempDir())
	defer b.Close()
	const normal, full = 1, 2
	for _, c := range []struct {
		kind store.Kind
		want int64
	}{
		{store.KindPin, normal}, {store.KindCredential, full}, {store.KindState, normal}, {store.KindCatalog, full},
		{store.KindDataKey, full}, {store.KindPin, normal},
	} {
		if _, err := b.Add(t.Context(), store.Key{Kind: c.kind, ID: "x"}, 0); err != nil {
			t.Fatal(err)
		}
		if got, err := b.Number(t.Context(), "PRAGMA synchronous"); got != c.want || err != nil {
			t.Errorf("%s: got %d and error %v, want %d", c.kind, got, err, c.want)
		}
	}
}

func TestMemoryIsBounded(t *testing.T) {
	b := open(t, t.TempDir())
	defer b.Close()
	const records, size = 40, 64 << 10
	var keys []store.Key
	for i := range records {
		r := store.Record{Key: store.Key{Kind: store.KindPin, ID: fmt.Sprint(i)}, Body: bytes.Repeat([]byte{byte(i)}, size)}
		keys = append(keys, r.Key)
		if _, err := b.Put(t.Context(), r, store.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		found, err := b.Get(t.Context(), keys)
		if err != nil || len(found) != records {
			t.Fatalf("got %d records and error %v, want %d and none", len(found), err, records)
		}
		for i, r := range found {
			if r.ID != keys[i].ID || !bytes.Equal(r.Body, bytes.Repeat([]byte{byte(i)}, size)) {
				t.Fatalf("got another record than %s's", keys[i].ID)
			}
		}
		for i := range 1000 { // what is not there is remembered too
			if _, err := b.Get(t.Context(), []store.Key{{Kind: store.KindPin, ID: fmt.Sprint("absent", i)}}); err != nil {
				t.Fatal(err)
			}
		}
		if n, err := b.KnownBytes(t.Context()); n > sqlitestore.KnownLimit+2*size || err != nil {
			t.Errorf("got %d bytes kept and error %v, want about %d at most", n, err, sqlitestore.KnownLimit)
		}
	}
}

func TestTidying(t *testing.T) {
	b := open(t, t.TempDir())
	defer b.Close()
	now := time.Now().Truncate(time.Millisecond)
	keep := map[string]bool{}
	var keys []store.Key
	for i := range sqlitestore.Batch*2 + 50 {
		r := store.Record{Key: store.Key{Kind: store.KindPin, ID: fmt.Sprintf("%04d", i)}, ExpiresAt: now.Add(-48 * time.Hour)}
		switch i % 4 {
		case 0: // ended, not to be deleted ever
		case 1:
			r.DeleteAfter = now
		case 2:
			r.DeleteAfter = now.Add(time.Hour)
		case 3:
			r.DeleteAfter = now.Add(-time.Millisecond)
		}
		keep[r.ID] = i%4 != 3
		keys = append(keys, r.Key)
		if _, err := b.Put(t.Context(), r, store.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	counted := store.Key{Kind: store.KindState, ID: "counted"}
	if _, err := b.Add(t.Context(), counted, 0); err != nil {
		t.Fatal(err)
	}
	keys, keep["counted"] = append(keys, counted), true

	must(t, b.TidyAll(t.Context(), now))
	found, err := b.Get(t.Context(), keys)
	if err != nil {
		t.Fatal(err)
	}
	left := map[string]bool{}
	for _, r := range found {
		left[r.ID] = true
	}
	for _, k := range keys {
		if left[k.ID] != keep[k.ID] {
			t.Errorf("%s: got left %v, want %v", k.ID, left[k.ID], keep[k.ID])
		}
	}
}

func TestTidyingFollowsAWrite(t *testing.T) {
	b := open(t, t.TempDir())
	defer b.Close()
	old := store.Record{Key: store.Key{Kind: store.KindPin, ID: "old"}, DeleteAfter: time.Now().Add(-time.Hour)}
	other := store.Key{Kind: store.KindPin, ID: "other"}
	there := func() bool {
		b.WaitTidied()
		found, err := b.Get(t.Context(), []store.Key{old.Key})
		must(t, err)
		return len(found) == 1
	}
	if _, err := b.Put(t.Context(), old, store.Condition{}); err != nil {
		t.Fatal(err)
	}
	if !there() {
		t.Error("just opened: got it deleted, want it there: a command does not tidy")
	}
	b.MakeTidyDue()
	if !there() {
		t.Error("read: got it deleted, want it there until a write")
	}
	for range 2 {
		if _, err := b.Add(t.Context(), other, 0); err != nil {
			t.Fatal(err)
		}
	}
	if there() {
		t.Error("written: got it there, want it deleted")
	}
	if _, err := b.Put(t.Context(), old, store.Condition{}); err != nil {
		t.Fatal(err)
	}
	if !there() {
		t.Error("written again soon: got it deleted, want no other round yet")
	}
}
