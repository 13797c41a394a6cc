package account_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"holdfast/internal/core/account"
)

func refusesFeature(s account.State, when time.Duration, feature string) bool {
	_, refused := s.Refused(at(when), account.Ask{Features: []string{feature}})
	return refused
}

// TestRefusesOneThing: a refusal of one thing is remembered for an hour, for what asks for
// it alone, and blocks nothing.
func TestRefusesOneThing(t *testing.T) {
	const hour = time.Hour
	access := func(r account.Rejection) account.Rejection {
		r.Kind, r.At, r.Rule = account.Access, t0, "rule"
		return r
	}
	large := account.Rejection{Kind: account.TooLarge, At: t0, Model: "m", Limit: account.Tokens, LimitTokens: 30_000, Requested: 60_000, Size: 240_000}
	untold := large
	untold.LimitTokens, untold.Requested = 0, 0
	m := account.Ask{Model: "m"}
	sized := func(n int64) account.Ask { return account.Ask{Model: "m", Size: n} }
	tests := []struct {
		name string
		r    account.Rejection
		ask  account.Ask
		when time.Duration
		want bool
	}{
		{"a feature", access(account.Rejection{Model: "m", Feature: "f"}), account.Ask{Features: []string{"g", "f"}}, 0, true},
		{"another feature", access(account.Rejection{Model: "m", Feature: "f"}), account.Ask{Model: "m", Features: []string{"g"}}, 0, false},
		{"an entitlement is one too", account.Rejection{Kind: account.Entitlement, At: t0, Feature: "f"}, account.Ask{Features: []string{"f"}}, 0, true},
		{"a model", access(account.Rejection{Model: "m"}), m, 0, true},
		{"a model in any tier", access(account.Rejection{Model: "m"}), account.Ask{Model: "m", Tier: "flex"}, 0, true},
		{"another model", access(account.Rejection{Model: "m"}), account.Ask{Model: "n"}, 0, false},
		{"a model that was not named", access(account.Rejection{}), account.Ask{}, 0, false},
		{"a tier", access(account.Rejection{Model: "m", Tier: "priority"}), account.Ask{Model: "m", Tier: "priority"}, 0, true},
		{"the model in another tier", access(account.Rejection{Model: "m", Tier: "priority"}), m, 0, false},
		{"a region binds everything", access(account.Rejection{Model: "m", Feature: account.FeatureRegion}), account.Ask{Model: "n"}, 0, true},
		{"a nanosecond before the hour", access(account.Rejection{Model: "m"}), m, hour - 1, true},
		{"after an hour", access(account.Rejection{Model: "m"}), m, hour, false},
		{"asked again all the same", access(account.Rejection{Model: "m"}), account.Ask{Model: "m", Again: true}, 0, false},

		{"as large a request", large, sized(240_000), 0, true},
		{"above the limit by its estimate and the margin", large, sized(150_001), 0, true},
		{"within the margin", large, sized(150_000), 0, false},
		{"of no known size", large, sized(0), 0, false},
		{"another model's", large, account.Ask{Model: "n", Size: 240_000}, 0, false},
		{"asking again does not make it smaller", large, account.Ask{Model: "m", Size: 240_000, Again: true}, 0, true},
		{"sizes untold: as large", untold, sized(240_000), 0, true},
		{"sizes untold: smaller", untold, sized(239_999), 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := refuse(tt.r)
			if _, got := s.Refused(at(tt.when), tt.ask); got != tt.want {
				t.Errorf("got refused %v, want %v", got, tt.want)
			}
			if len(s.Blocks) != 0 || s.Parked != nil {
				t.Errorf("got blocks %v, parked %v; want neither", s.Blocks, s.Parked)
			}
		})
	}
	t.Run("a smaller one lowers the size", func(t *testing.T) {
		smaller := untold
		smaller.Size, smaller.At = 100_000, at(1)
		if _, got := refuse(untold, smaller).Refused(at(1), sized(100_000)); !got {
			t.Error("got nothing refused")
		}
		if _, got := refuse(smaller, untold).Refused(at(1), sized(100_000)); !got {
			t.Error("folded the other way round: got nothing refused")
		}
	})
	t.Run("a larger one that is served ends it", func(t *testing.T) {
		if s := refuse(large).Served(sized(200_000), at(1)); len(s.Refuses) != 0 {
			t.Errorf("got %v", s.Refuses)
		}
		if s := refuse(large).Served(sized(1_000), at(1)); len(s.Refuses) != 1 {
			t.Error("a small one ended it as well")
		}
	})
	t.Run("every account refuses it", func(t *testing.T) {
		s := refuse(access(account.Rejection{Model: "m"}))
		if s := s.Forget(account.Thing{Model: "m"}, t0.Add(-1)); len(s.Refuses) != 1 {
			t.Error("a newer refusal was forgotten")
		}
		if s := s.Forget(account.Thing{Model: "m"}, t0); len(s.Refuses) != 0 {
			t.Errorf("got %v", s.Refuses)
		}
	})
	t.Run("a new credential of the owner's", func(t *testing.T) {
		if s := refuse(access(account.Rejection{Model: "m"})).Reconsidered(); len(s.Refuses) != 0 {
			t.Errorf("got %v", s.Refuses)
		}
	})
	t.Run("another host", func(t *testing.T) {
		if s := refuse(access(account.Rejection{Feature: account.FeatureRegion})).Elsewhere(at(1)); len(s.Refuses) != 0 {
			t.Errorf("got %v", s.Refuses)
		}
	})
}

// TestRefusedThingsAreBounded: clients name the models, and there is no end to those.
func TestRefusedThingsAreBounded(t *testing.T) {
	var s account.State
	for i := range 200 {
		s = s.Reject(account.Rejection{Kind: account.Access, At: at(time.Duration(i)), Model: fmt.Sprint("m", i)}, rules)
	}
	if len(s.Refuses) != 64 {
		t.Fatalf("got %d remembered, want 64", len(s.Refuses))
	}
	if _, refused := s.Refused(at(200), account.Ask{Model: "m199"}); !refused {
		t.Error("the newest was given up")
	}
	s = s.Reject(account.Rejection{Kind: account.Access, At: at(2 * time.Hour), Model: "m"}, rules)
	if len(s.Refuses) != 1 {
		t.Errorf("got %d, want those that ended gone", len(s.Refuses))
	}
}

// TestFeaturesOfEarlierVersions: what earlier versions stored is read.
func TestFeaturesOfEarlierVersions(t *testing.T) {
	var s account.State
	old := `{"read_at":"2027-03-04T10:00:00Z","features":{"long-context":"` + at(30*time.Minute).Format(time.RFC3339Nano) + `"}}`
	if err := json.Unmarshal([]byte(old), &s); err != nil {
		t.Fatal(err)
	}
	if !s.Seen() || !refusesFeature(s, 30*time.Minute-1, "long-context") || refusesFeature(s, 30*time.Minute, "long-context") {
		t.Errorf("got %+v", s)
	}
}

// TestPausesOfSome is field case bulk-refusals-stop-interactive-work: a tier's refusal pauses
// that tier of the model, and what a background request hears pauses background requests.
func TestPausesOfSome(t *testing.T) {
	throttle := account.Rejection{Kind: account.Throttle, At: t0, Model: "m", Family: "f", PerModel: true, Until: at(time.Minute)}
	flex, background := throttle, throttle
	flex.Tier, background.Background = "flex", true
	short := bare(0, "m")
	short.Background = true
	second := bare(1, "n")
	second.Background = true
	window := spent(0, account.FiveHour, "", time.Hour)
	window.Background = true
	m := account.Ask{Family: "f", Model: "m"}
	of := func(tier string, background bool) account.Ask {
		a := m
		a.Tier, a.Background = tier, background
		return a
	}
	tests := []struct {
		name string
		s    account.State
		ask  account.Ask
		want bool
	}{
		{"the tier", refuse(flex), of("flex", false), true},
		{"no tier", refuse(flex), m, false},
		{"another tier", refuse(flex), of("priority", false), false},
		{"the tier of another model", refuse(flex), account.Ask{Model: "n", Tier: "flex"}, false},
		{"a throttle of a background request", refuse(background), of("", true), true},
		{"does not block an interactive one", refuse(background), m, false},
		{"an interactive request's is everyone's", refuse(throttle), of("", true), true},
		{"both, each its own", refuse(background, throttle), m, true},
		{"a bare one", refuse(short), of("", true), true},
		{"does not block an interactive one either", refuse(short), m, false},
		{"two models of background requests", refuse(short, second), account.Ask{Model: "o", Background: true}, true},
		{"are no word on the account", refuse(short, second), account.Ask{Model: "o"}, false},
		{"one of each does not block it either", refuse(short, bare(1, "n")), account.Ask{Model: "o", Background: true}, false},
		{"a spent window is a spent window", refuse(window), m, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := len(blocksFor(tt.s, at(2), tt.ask)) > 0; got != tt.want {
				t.Errorf("got blocked %v, want %v", got, tt.want)
			}
			if kept := roundTrip(t, tt.s); len(blocksFor(kept, at(2), tt.ask)) > 0 != tt.want {
				t.Error("stored and read it is not the same")
			}
		})
	}
}
