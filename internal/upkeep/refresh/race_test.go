package refresh_test

import (
	"crypto/rand"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"holdfast/internal/core/credential"
	"holdfast/internal/store"
	"holdfast/internal/store/dynamostore"
	"holdfast/internal/store/memstore"
	"holdfast/internal/store/sqlitestore"
	"holdfast/internal/test/awstest"
	"holdfast/internal/test/issuertest"
	"holdfast/internal/upkeep/refresh"
)

// onEach runs a test over every store. rounds is how often it is worth repeating there.
func onEach(t *testing.T, test func(t *testing.T, rounds int, open func() store.Backend)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) {
		backend := memstore.New()
		test(t, 20, func() store.Backend { return backend })
	})
	t.Run("file", func(t *testing.T) {
		dir := t.TempDir()
		test(t, 10, func() store.Backend {
			backend, err := sqlitestore.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			return backend
		})
	})
	t.Run("DynamoDB", func(t *testing.T) {
		cfg := awstest.Config(awstest.StartMiniStack(t, false))
		cfg.HTTPClient = &http.Client{Transport: http.DefaultTransport}
		client, table := dynamostore.Client(cfg), "holdfast-"+rand.Text()
		if err := dynamostore.CreateTable(t.Context(), client, table); err != nil {
			t.Fatal(err)
		}
		test(t, 3, func() store.Backend { return dynamostore.New(patient(cfg.BaseEndpoint), table) })
	})
}

func patient(endpoint *string) *dynamodb.Client {
	cfg := awstest.Config(*endpoint)
	cfg.HTTPClient = &http.Client{Transport: http.DefaultTransport}
	return dynamostore.Client(cfg)
}

// refresh-race: at the instant of expiry, four requests and a background renewal each in
// five refreshers want a later credential. The issuer revokes the family on any reuse.
func TestRace(t *testing.T) {
	onEach(t, func(t *testing.T, rounds int, open func() store.Backend) {
		b := begin(t, issuertest.Options{}, open)
		all := make([]*refresh.Refresher, 5)
		for i := range all {
			all[i] = b.refresher(nil)
		}
		calls := 0
		for round := range rounds {
			held := b.stored()
			generation := int64(round) + 2
			var running sync.WaitGroup
			start := make(chan struct{})
			for _, r := range all {
				for range 4 {
					calls++
					running.Go(func() { <-start; b.renewed(r, held, generation) })
				}
				calls++
				running.Go(func() {
					<-start
					if stored, _, err := b.vault.Load(t.Context(), accountID); err != nil || refresh.Due(stored, b.clock.now()) {
						b.renewed(r, stored, generation)
					}
				})
			}
			close(start)
			running.Wait()
			b.clock.advance(9 * time.Hour) // to the next expiry
		}
		b.counts(issuertest.Counts{Requests: rounds, Exchanges: rounds})
		t.Logf("%d races of 20 requests and 5 background renewals in 5 refreshers: %d calls, %d exchanges, %d tokens lost",
			rounds, calls, b.issuer.Counts().Exchanges, b.issuer.Counts().Revoked)
	})
}

// renewed is good for goroutines.
func (b *bench) renewed(r *refresh.Refresher, held credential.Credential, generation int64) {
	got, err := r.Renew(b.Context(), b.acct, held)
	if err != nil || got.Generation != generation || !b.issuer.Good(got) {
		b.Errorf("renew: got generation %d (good: %v) and error %v, want a good one of %d", got.Generation, b.issuer.Good(got), err, generation)
	}
}

// The rarer ways, on every store.
func TestRaceWithTrouble(t *testing.T) {
	onEach(t, func(t *testing.T, _ int, open func() store.Backend) {
		b := begin(t, issuertest.Options{Grace: 24 * time.Hour}, open)
		first, other := b.refresher(nil), b.impatient()

		thaw := b.frozen(first)
		b.bad(other, refresh.ErrTransient)
		b.clock.advance(refresh.TakeoverAfter)
		b.good(other, 2) // takes over
		if got, err := thaw(); err != nil || got.Generation != 2 {
			t.Errorf("the late holder: got generation %d and error %v, want what is stored", got.Generation, err)
		}
		b.counts(issuertest.Counts{Requests: 2, Exchanges: 1, Repeats: 1})

		b.clock.advance(9 * time.Hour)
		b.issuer.Next(issuertest.Fault{Cut: true})
		b.good(other, 3)
		b.counts(issuertest.Counts{Requests: 4, Exchanges: 2, Repeats: 2})

		b.clock.advance(9 * time.Hour)
		f := &failing{store.KindCredential, 4}
		saving := b.refresher(f.put)
		b.bad(saving, refresh.ErrTransient)
		b.bad(other, refresh.ErrTransient)
		b.good(saving, 4)
		b.good(other, 4)
		b.counts(issuertest.Counts{Requests: 5, Exchanges: 3, Repeats: 2})

		b.clock.advance(9 * time.Hour)
		b.issuer.Next(issuertest.Fault{Status: http.StatusBadRequest, Body: gone})
		b.bad(first, refresh.ErrOwner)
		b.bad(other, refresh.ErrOwner)
		b.counts(issuertest.Counts{Requests: 6, Exchanges: 3, Repeats: 2})
		if got := b.parked(); got != refresh.ReasonRefused {
			t.Errorf("got parked %q, want %q", got, refresh.ReasonRefused)
		}
	})
}
