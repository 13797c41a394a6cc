package datakey_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"

	"holdfast/internal/aws/datakey"
	"holdfast/internal/store"
	"holdfast/internal/store/memstore"
	"holdfast/internal/test/awstest"
)

// bench is a KMS, seen through a front, with one key in it.
type bench struct {
	*awstest.Front
	kms *kms.Client
	key string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	front := awstest.NewFront(t, awstest.StartMiniStack(t, true))
	b := &bench{Front: front, kms: kms.NewFromConfig(awstest.Config(front.URL))}
	b.key = b.newKey(t)
	front.Calls()
	return b
}

func (b *bench) newKey(t *testing.T) string {
	t.Helper()
	made, err := b.kms.CreateKey(t.Context(), &kms.CreateKeyInput{})
	if err != nil {
		t.Fatal(err)
	}
	return *made.KeyMetadata.Arn
}

func (b *bench) source(records store.Backend) datakey.Source {
	return datakey.Source{Records: records, KMS: b.kms, KMSKey: b.key, Table: "holdfast"}
}

func load(t *testing.T, s datakey.Source) [datakey.Size]byte {
	t.Helper()
	key, err := s.Load(t.Context())
	if err != nil {
		t.Fatalf("got %v, want no error", err)
	}
	return key
}

func (b *bench) checkCalls(t *testing.T, generate, decrypt int) {
	t.Helper()
	calls := b.Calls()
	if calls["GenerateDataKey"] != generate || calls["Decrypt"] != decrypt {
		t.Errorf("got calls %v, want %d of GenerateDataKey and %d of Decrypt", calls, generate, decrypt)
	}
}

// stored is the record of the data key.
func stored(t *testing.T, records store.Backend) store.Record {
	t.Helper()
	found, err := records.Get(t.Context(), []store.Key{{Kind: store.KindDataKey, ID: "datakey"}})
	if err != nil || len(found) != 1 {
		t.Fatalf("got %d records and error %v, want one", len(found), err)
	}
	return found[0]
}

func TestMadeOnceThenOpened(t *testing.T) {
	b, records := newBench(t), memstore.New()
	first := load(t, b.source(records))
	b.checkCalls(t, 1, 0)
	if second := load(t, b.source(records)); second != first {
		t.Error("got another key, want the same")
	}
	b.checkCalls(t, 0, 1)
	if first == load(t, b.source(memstore.New())) {
		t.Error("got the same key for another store, want one of its own")
	}
	if first == [datakey.Size]byte{} {
		t.Error("got a key of zeros")
	}
}

// TestStoredWrapped: the record holds what KMS wrapped, in the context of the table, and
// nothing of the key itself.
func TestStoredWrapped(t *testing.T) {
	b, records := newBench(t), memstore.New()
	key := load(t, b.source(records))
	r := stored(t, records)
	if strings.Contains(string(r.Body), string(key[:])) {
		t.Error("the record holds the open key")
	}
	var body struct {
		Wrapped []byte
		KMSKey  string `json:"kms_key"`
		Table   string
	}
	if err := json.Unmarshal(r.Body, &body); err != nil || body.KMSKey != b.key || body.Table != "holdfast" {
		t.Errorf("got key %s, table %s and error %v, want %s, holdfast and none", body.KMSKey, body.Table, err, b.key)
	}
	opened, err := b.kms.Decrypt(t.Context(), &kms.DecryptInput{
		CiphertextBlob: body.Wrapped, KeyId: &b.key, EncryptionContext: map[string]string{"holdfast:table": "holdfast"},
	})
	if err != nil || string(opened.Plaintext) != string(key[:]) {
		t.Errorf("KMS opens it to another key, or not at all: %v", err)
	}
	var garbled *types.InvalidCiphertextException
	if _, err := b.kms.Decrypt(t.Context(), &kms.DecryptInput{CiphertextBlob: body.Wrapped, KeyId: &b.key}); !errors.As(err, &garbled) {
		t.Errorf("without the context: got %v, want InvalidCiphertextException", err)
	}
}

func TestRacersGetOneKey(t *testing.T) {
	b := newBench(t)
	for range 5 {
		records := memstore.New()
		const racers = 8
		keys := make([][datakey.Size]byte, racers)
		var all sync.WaitGroup
		for i := range racers {
			all.Go(func() {
				var err error
				if keys[i], err = b.source(records).Load(context.Background()); err != nil {
					t.Errorf("got %v, want no error", err)
				}
			})
		}
		all.Wait()
		for i := range keys {
			if keys[i] != keys[0] {
				t.Errorf("racer %d got another key than racer 0", i)
			}
		}
		if r := stored(t, records); r.Revision != 1 {
			t.Errorf("got revision %d, want 1: made once", r.Revision)
		}
	}
}

// lost is a store whose answer to a Put gets lost, once.
type lost struct {
	store.Backend
	done bool
}

func (l *lost) Put(ctx context.Context, r store.Record, cond store.Condition) (store.Record, error) {
	stored, err := l.Backend.Put(ctx, r, cond)
	if !l.done {
		l.done = true
		return store.Record{}, store.ErrUnavailable
	}
	return stored, err
}

func TestLostAnswerIsNoSecondKey(t *testing.T) {
	b, records := newBench(t), memstore.New()
	s := b.source(&lost{Backend: records})
	if _, err := s.Load(t.Context()); !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("got %v, want ErrUnavailable", err)
	}
	if load(t, s) != load(t, b.source(records)) {
		t.Error("got two keys, want one")
	}
	if r := stored(t, records); r.Revision != 1 {
		t.Errorf("got revision %d, want 1", r.Revision)
	}
}

func TestErrors(t *testing.T) {
	b := newBench(t)
	denied := awstest.Refuse(http.StatusBadRequest, "AccessDeniedException")
	disabled := b.newKey(t)
	if _, err := b.kms.DisableKey(t.Context(), &kms.DisableKeyInput{KeyId: &disabled}); err != nil {
		t.Fatal(err)
	}
	deleted := b.newKey(t)
	if _, err := b.kms.ScheduleKeyDeletion(t.Context(), &kms.ScheduleKeyDeletionInput{KeyId: &deleted}); err != nil {
		t.Fatal(err)
	}
	other := b.newKey(t)
	missing := "arn:aws:kms:us-east-1:000000000000:key/" + rand.Text()
	for _, c := range []struct {
		name        string
		made        bool // by somebody before
		change      func(*datakey.Source)
		operation   string
		trouble     awstest.Trouble
		unavailable bool
		want        string
	}{
		{name: "DisabledWhenMaking", change: func(s *datakey.Source) { s.KMSKey = disabled }, want: "the KMS key " + disabled + " is disabled: enable it"},
		{name: "Disabled", made: true, operation: "Decrypt", trouble: awstest.Refuse(http.StatusBadRequest, "DisabledException"), want: "the KMS key " + b.key + " is disabled: enable it"},
		{name: "PendingDeletion", change: func(s *datakey.Source) { s.KMSKey = deleted }, want: "the KMS key " + deleted + " cannot be used"},
		{name: "NoSuchKey", change: func(s *datakey.Source) { s.KMSKey = missing }, want: "there is no KMS key " + missing},
		{name: "MayNotMake", operation: "GenerateDataKey", trouble: denied, want: "it needs kms:GenerateDataKey on the KMS key " + b.key},
		{name: "MayNotOpen", made: true, operation: "Decrypt", trouble: denied, want: "it needs kms:Decrypt on the KMS key " + b.key},
		{name: "AnotherTable", made: true, change: func(s *datakey.Source) { s.Table = "restored" }, want: "the data key in table restored was made for table holdfast"},
		// The stand-in opens under any key; AWS refuses.
		{name: "AnotherKMSKey", made: true, operation: "Decrypt", trouble: awstest.Refuse(http.StatusBadRequest, "IncorrectKeyException"), change: func(s *datakey.Source) { s.KMSKey = other }, want: "it was wrapped under " + b.key},
		{name: "KMSDown", made: true, operation: "Decrypt", trouble: awstest.Refuse(http.StatusInternalServerError, "KMSInternalException"), unavailable: true, want: "open the data key"},
		{name: "KMSThrottles", operation: "GenerateDataKey", trouble: awstest.Refuse(http.StatusBadRequest, "ThrottlingException"), unavailable: true, want: "make the data key"},
	} {
		t.Run(c.name, func(t *testing.T) {
			records := memstore.New()
			s := b.source(records)
			s.KMS = kms.NewFromConfig(awstest.Config(b.URL), func(o *kms.Options) { o.Retryer = aws.NopRetryer{} })
			if c.made {
				load(t, s)
			}
			if c.change != nil {
				c.change(&s)
			}
			if c.operation != "" {
				b.Next(c.operation, c.trouble)
			}
			key, err := s.Load(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want one line with %q", err, c.want)
			}
			if errors.Is(err, store.ErrUnavailable) != c.unavailable {
				t.Errorf("got %v, want unavailable: %v", err, c.unavailable)
			}
			if key != [datakey.Size]byte{} {
				t.Error("got a key beside the error")
			}
		})
	}
}

func TestCorruptRecord(t *testing.T) {
	b := newBench(t)
	for _, body := range []string{"", "{}", "not JSON", `{"wrapped":"AAAA","table":"holdfast"}`} {
		records := memstore.New()
		if _, err := records.Put(t.Context(), store.Record{Key: store.Key{Kind: store.KindDataKey, ID: "datakey"}, Body: []byte(body)}, store.Condition{}); err != nil {
			t.Fatal(err)
		}
		if _, err := b.source(records).Load(t.Context()); err == nil {
			t.Errorf("%q: got no error", body)
		}
		if r := stored(t, records); r.Revision != 1 || string(r.Body) != body {
			t.Errorf("%q: the record was replaced", body)
		}
	}
}
