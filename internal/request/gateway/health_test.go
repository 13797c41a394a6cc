package gateway_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/provider"
	"holdfast/internal/provider/anthropic"
	"holdfast/internal/request/gateway"
	"holdfast/internal/store"
	"holdfast/internal/store/memstore"
	"holdfast/internal/store/seal"
	"holdfast/internal/transport/forward"
)

// TestHealthOfDefaultModels: a gateway whose accounts can serve no default model is not
// healthy, whatever else they could serve.
func TestHealthOfDefaultModels(t *testing.T) {
	family := func(name string) func(*bench) {
		return func(b *bench) {
			b.fold("marlow", func(s account.State) account.State {
				return s.Reject(account.Rejection{Kind: account.ModelWindow, At: b.clock.now(), Spent: []account.Spent{{Window: account.WeeklyOf(name), Family: name, ResetAt: b.clock.now().Add(time.Hour)}}}, account.Rules{})
			})
		}
	}
	for _, tt := range []struct {
		name string
		edit func(*bench)
		want int
	}{
		{"nothing is blocked", func(*bench) {}, http.StatusOK},
		{"another family is", family("opus"), http.StatusOK},
		{"the default family is", family("sonnet"), http.StatusServiceUnavailable},
		{"of two default families one is left", func(b *bench) {
			b.change(func(c catalog.Catalog) catalog.Catalog {
				c, err := c.Set("default_models", "*sonnet*,*haiku*")
				if err != nil {
					t.Fatal(err)
				}
				return c
			})
			family("sonnet")(b)
		}, http.StatusOK},
		{"the model was refused", func(b *bench) {
			b.fold("marlow", func(s account.State) account.State {
				return s.Reject(account.Rejection{Kind: account.Access, At: b.clock.now(), Model: "claude-sonnet-5"}, account.Rules{})
			})
		}, http.StatusServiceUnavailable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, "marlow")
			tt.edit(b)
			if r := b.do(ask{method: "GET", path: "/_holdfast/health"}); r.status != tt.want {
				t.Errorf("got %d, want %d", r.status, tt.want)
			}
		})
	}
}

// hangs is a backend whose reads take until their time is up.
type hangs struct {
	store.Backend
	reads atomic.Int64
}

func (h *hangs) Get(ctx context.Context, _ []store.Key) ([]store.Record, error) {
	h.reads.Add(1)
	select {
	case <-ctx.Done():
	case <-time.After(2 * time.Second):
	}
	return nil, store.ErrUnavailable
}

// TestHealthChecksShareALook: those who ask for the health while it is looked at, of a store
// that hangs, wait for the same look. One who leaves ends it for nobody.
func TestHealthChecksShareALook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hangs{Backend: memstore.New()}
		box, err := seal.New([32]byte{1})
		if err != nil {
			t.Fatal(err)
		}
		g, err := gateway.New(gateway.Options{
			Store: store.New(h), Box: box, Now: time.Now, Limits: forward.DefaultLimits, Log: slog.New(slog.DiscardHandler),
			Providers: map[account.Provider]provider.Provider{account.Anthropic: anthropic.Provider{}},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		var all sync.WaitGroup
		first, leave := context.WithCancel(t.Context())
		for i := range 5 {
			all.Go(func() {
				ctx := t.Context()
				if i == 0 {
					ctx = first
				}
				w := httptest.NewRecorder()
				g.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/_holdfast/health", nil))
				if w.Code != http.StatusServiceUnavailable {
					t.Errorf("got %d, want 503", w.Code)
				}
			})
			synctest.Wait()
		}
		leave()
		all.Wait()
		if n := h.reads.Load(); n != 1 {
			t.Errorf("got %d reads of the store, want one", n)
		}
	})
}
