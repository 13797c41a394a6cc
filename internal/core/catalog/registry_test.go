package catalog_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/core/catalog"
	"holdfast/internal/core/usage"
)

func TestSettingsDefaults(t *testing.T) {
	want := catalog.Settings{
		PinTTL: time.Hour, BoundPinTTL: 720 * time.Hour, MoveAfter: time.Minute,
		Reserve: 0.15, ShortWindowLine: 0.80, ExcludeLine: 0.97,
		TrialRequests: 3, BackgroundHeadroom: 0.15,
		FreshFor: 10 * time.Minute, BarePause: 5 * time.Second, ProbeInterval: 10 * time.Minute, PollInterval: 5 * time.Minute,
		MaxBody:         32 * 1024 * 1024,
		UpstreamTimeout: 16 * time.Minute, KeepAlive: 15 * time.Second,
		WeightExpiring: 1, WeightPace: 1, WeightShort: 1, WeightModel: 1,
		ExpensiveModels: []string{"*fable*"}, DefaultModels: []string{"*sonnet*"},
		YieldKnownBackground: true,
	}
	if diff := cmp.Diff(want, catalog.Catalog{}.Settings()); diff != "" {
		t.Errorf("settings of an empty catalog (-want +got):\n%s", diff)
	}
}

func TestSetAllows(t *testing.T) {
	tests := []struct {
		name, key, value string
		got              func(catalog.Settings) any
		want             any
	}{
		{"shortest duration", "pin_ttl", "1s", func(s catalog.Settings) any { return s.PinTTL }, time.Second},
		{"duration of parts", "pin_ttl", "1h30m", func(s catalog.Settings) any { return s.PinTTL }, 90 * time.Minute},
		{"longest duration", "bound_pin_ttl", "87600h", func(s catalog.Settings) any { return s.BoundPinTTL }, 87600 * time.Hour},
		{"spaces around", "move_after", " 90s ", func(s catalog.Settings) any { return s.MoveAfter }, 90 * time.Second},
		{"share of nothing", "reserve", "0", func(s catalog.Settings) any { return s.Reserve }, 0.0},
		{"share of all", "exclude_line", "1", func(s catalog.Settings) any { return s.ExcludeLine }, 1.0},
		{"short line", "short_window_line", "0.5", func(s catalog.Settings) any { return s.ShortWindowLine }, 0.5},
		{"background", "background_headroom", ".25", func(s catalog.Settings) any { return s.BackgroundHeadroom }, 0.25},
		{"no trials", "trial_requests", "0", func(s catalog.Settings) any { return s.TrialRequests }, int64(0)},
		{"fresh", "fresh_for", "2m", func(s catalog.Settings) any { return s.FreshFor }, 2 * time.Minute},
		{"bare", "bare_pause", "10s", func(s catalog.Settings) any { return s.BarePause }, 10 * time.Second},
		{"probe", "probe_interval", "1m", func(s catalog.Settings) any { return s.ProbeInterval }, time.Minute},
		{"poll", "poll_interval", "1m", func(s catalog.Settings) any { return s.PollInterval }, time.Minute},
		{"size in MiB", "max_body", "8MiB", func(s catalog.Settings) any { return s.MaxBody }, int64(8 << 20)},
		{"size in KiB", "max_body", "1KiB", func(s catalog.Settings) any { return s.MaxBody }, int64(1 << 10)},
		{"largest size", "max_body", "1GiB", func(s catalog.Settings) any { return s.MaxBody }, int64(1 << 30)},
		{"size in bytes", "max_body", "1048577", func(s catalog.Settings) any { return s.MaxBody }, int64(1048577)},
		{"upstream", "upstream_timeout", "20m", func(s catalog.Settings) any { return s.UpstreamTimeout }, 20 * time.Minute},
		{"keep alive", "keep_alive", "5s", func(s catalog.Settings) any { return s.KeepAlive }, 5 * time.Second},
		{"keep alive off", "keep_alive", "0", func(s catalog.Settings) any { return s.KeepAlive }, time.Duration(0)},
		{"keep alive off in seconds", "keep_alive", "0s", func(s catalog.Settings) any { return s.KeepAlive }, time.Duration(0)},
		{"weight off", "weight_expiring", "0", func(s catalog.Settings) any { return s.WeightExpiring }, 0.0},
		{"weight", "weight_pace", "2.5", func(s catalog.Settings) any { return s.WeightPace }, 2.5},
		{"weight short", "weight_short", "100", func(s catalog.Settings) any { return s.WeightShort }, 100.0},
		{"weight model", "weight_model", "3", func(s catalog.Settings) any { return s.WeightModel }, 3.0},
		{"patterns", "expensive_models", "*fable*, claude-opus-?", func(s catalog.Settings) any { return s.ExpensiveModels }, []string{"*fable*", "claude-opus-?"}},
		{"no pattern", "default_models", "", func(s catalog.Settings) any { return s.DefaultModels }, []string{}},
		{"origins", "allowed_origins", "https://App.example.com/, http://localhost:5173,https://app.example.com", func(s catalog.Settings) any { return s.AllowedOrigins }, []string{"https://app.example.com", "http://localhost:5173"}},
		{"price", "prices", " gpt-5.5*=1.25/0.125/1.25/10, x=0/0/0/0", func(s catalog.Settings) any { return s.Prices }, []usage.Price{{Model: "gpt-5.5*", Input: 1.25, CacheRead: 0.125, CacheWrite: 1.25, Output: 10}, {Model: "x"}}},
		{"switch", "yield_known_background", "true", func(s catalog.Settings) any { return s.YieldKnownBackground }, true},
	}
	set := map[string]bool{}
	for _, tt := range tests {
		set[tt.key] = true
		t.Run(tt.name, func(t *testing.T) {
			c, err := catalog.Catalog{}.Set(tt.key, tt.value)
			if err != nil {
				t.Fatalf("Set(%q, %q): %v", tt.key, tt.value, err)
			}
			if diff := cmp.Diff(tt.want, tt.got(c.Settings())); diff != "" {
				t.Errorf("after Set(%q, %q) (-want +got):\n%s", tt.key, tt.value, diff)
			}
			c, err = c.Reset(tt.key)
			if err != nil {
				t.Fatalf("Reset(%q): %v", tt.key, err)
			}
			if diff := cmp.Diff(catalog.Catalog{}.Settings(), c.Settings()); diff != "" {
				t.Errorf("after Reset(%q) (-want +got):\n%s", tt.key, diff)
			}
		})
	}
	for _, s := range catalog.Registry() {
		if !set[s.Name] {
			t.Errorf("no case sets %s", s.Name)
		}
	}
}

func TestSetRefuses(t *testing.T) {
	const duration, fraction, factor = "a duration from 1s to 87600h", "a fraction from 0 to 1", "a number from 0 to 1000"
	tests := []struct{ key, value, want string }{
		{"pin_ttl", "999ms", duration},
		{"pin_ttl", "0", duration},
		{"pin_ttl", "-1h", duration},
		{"pin_ttl", "30y", duration},
		{"pin_ttl", "3600", duration},
		{"pin_ttl", "", duration},
		{"pin_ttl", "87601h", duration},
		{"pin_ttl", "9999999h", duration},
		{"upstream_timeout", "0", duration},
		{"keep_alive", "999ms", "0 (off) or " + duration},
		{"keep_alive", "off", "0 (off) or " + duration},
		{"reserve", "115%", fraction},
		{"reserve", "1.01", fraction},
		{"reserve", "-0.1", fraction},
		{"reserve", "NaN", fraction},
		{"reserve", "Inf", fraction},
		{"reserve", "0,15", fraction},
		{"reserve", "0x1p-2", fraction},
		{"reserve", "1e-400", fraction},
		{"reserve", "-0", fraction},
		{"reserve", ".", fraction},
		{"reserve", "0_1", fraction},
		{"trial_requests", "-1", "a whole number from 0 to 1000"},
		{"trial_requests", "2.5", "a whole number from 0 to 1000"},
		{"trial_requests", "1001", "a whole number from 0 to 1000"},
		{"max_body", "1023", "a size from 1KiB to 1GiB"},
		{"max_body", "2GiB", "a size from 1KiB to 1GiB"},
		{"max_body", "32TB", "a size from 1KiB to 1GiB"},
		{"max_body", "9223372036854775807KiB", "a size from 1KiB to 1GiB"},
		{"max_body", "-1MiB", "a size from 1KiB to 1GiB"},
		{"max_body", "MiB", "a size from 1KiB to 1GiB"},
		{"weight_pace", "-1", factor},
		{"weight_pace", "1e308", factor},
		{"weight_pace", "nan", factor},
		{"weight_pace", "heavy", factor},
		{"expensive_models", "claude-[", "model patterns between commas"},
		{"expensive_models", "claude fable", "model patterns between commas"},
		{"expensive_models", strings.Repeat("a", 101), "model patterns between commas"},
		{"expensive_models", strings.Repeat("a,", 51), "model patterns between commas"},
		{"yield_known_background", "yes", "true or false"},
	}
	for _, tt := range tests {
		t.Run(tt.key+" "+tt.value[:min(20, len(tt.value))], func(t *testing.T) {
			_, err := catalog.Catalog{}.Set(tt.key, tt.value)
			if err == nil {
				t.Fatalf("Set(%q, %q) was allowed", tt.key, tt.value)
			}
			if !strings.Contains(err.Error(), tt.key+" must be ") || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %q, want the setting's name and its range: %q", err, tt.want)
			}
		})
	}
}

func TestSetUnknown(t *testing.T) {
	tests := []struct{ name, key, want string }{
		{"a slip", "pin_tll", "did you mean pin_ttl?"},
		{"dashes", "pin-ttl", "did you mean pin_ttl or bound_pin_ttl?"},
		{"a part", "weight", "did you mean weight_expiring or weight_pace or weight_short?"},
		{"capitals", "MAX_BODY", "did you mean max_body?"},
		{"nothing like it", "temperature", "`holdfast settings` lists them all"},
		{"empty", "", "`holdfast settings` lists them all"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := catalog.Catalog{}.Set(tt.key, "1h")
			if err == nil || !strings.HasSuffix(err.Error(), tt.want) {
				t.Errorf("Set(%q): got %v, want an error that ends in %q", tt.key, err, tt.want)
			}
			if _, err := (catalog.Catalog{}).Reset(tt.key); err == nil {
				t.Errorf("Reset(%q) was allowed", tt.key)
			}
		})
	}
}

// A store that another version wrote to must not stop this one.
func TestSettingsForeignOverrides(t *testing.T) {
	c := catalog.Catalog{Overrides: map[string]string{
		"not_known_here": "1", "pin_ttl": "soon", "yield_known_background": "perhaps", "reserve": "0.2",
	}}
	want := catalog.Catalog{}.Settings()
	want.Reserve = 0.2
	if diff := cmp.Diff(want, c.Settings()); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
}

func TestSettingText(t *testing.T) {
	want := map[string]string{
		"pin_ttl": "1h", "bound_pin_ttl": "720h", "move_after": "60s", "fresh_for": "10m", "bare_pause": "5s",
		"reserve": "0.15", "trial_requests": "3", "max_body": "32MiB", "weight_pace": "1",
		"expensive_models": "*fable*", "yield_known_background": "true",
	}
	s := catalog.Catalog{}.Settings()
	for _, setting := range catalog.Registry() {
		got := setting.In(s)
		if w, ok := want[setting.Name]; ok && got != w {
			t.Errorf("%s reads %q, want %q", setting.Name, got, w)
		}
		c, err := catalog.Catalog{}.Set(setting.Name, got)
		if err != nil {
			t.Errorf("Set(%q, %q), as listed: %v", setting.Name, got, err)
		}
		if diff := cmp.Diff(s, c.Settings()); diff != "" {
			t.Errorf("%s is not read back as it is listed (-want +got):\n%s", setting.Name, diff)
		}
	}
}

func TestSetLeavesTheOldCatalog(t *testing.T) {
	old, err := catalog.Catalog{}.Set("reserve", "0.2")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := old.Set("reserve", "0.3"); err != nil {
		t.Fatal(err)
	}
	if _, err := old.Reset("reserve"); err != nil {
		t.Fatal(err)
	}
	if got := old.Settings().Reserve; got != 0.2 {
		t.Errorf("the catalog that was changed now says %v, want 0.2", got)
	}
}

func FuzzSet(f *testing.F) {
	for _, s := range catalog.Registry() {
		f.Add(s.Name, s.Default)
	}
	for _, v := range []string{"NaN", "1e400", "-0", "9223372036854775807GiB", "2562047h47m16.854775807s", "[", "a,,b"} {
		f.Add("pin_ttl", v)
		f.Add("reserve", v)
		f.Add("max_body", v)
		f.Add("default_models", v)
	}
	f.Fuzz(func(t *testing.T, key, value string) {
		c, err := catalog.Catalog{}.Set(key, value)
		if err != nil {
			return
		}
		s := c.Settings()
		for _, d := range []time.Duration{s.PinTTL, s.BoundPinTTL, s.MoveAfter, s.FreshFor, s.BarePause, s.ProbeInterval, s.PollInterval} {
			if d < time.Second || d > catalog.LongestDuration {
				t.Errorf("Set(%q, %q) let %v through", key, value, d)
			}
		}
		for _, v := range []float64{s.Reserve, s.ShortWindowLine, s.ExcludeLine, s.BackgroundHeadroom} {
			if !(v >= 0 && v <= 1) {
				t.Errorf("Set(%q, %q) let %v through", key, value, v)
			}
		}
		for _, v := range []float64{s.WeightExpiring, s.WeightPace, s.WeightShort, s.WeightModel} {
			if !(v >= 0 && v <= 1000) {
				t.Errorf("Set(%q, %q) let %v through", key, value, v)
			}
		}
		if s.MaxBody < 1<<10 || s.MaxBody > 1<<30 {
			t.Errorf("Set(%q, %q) let %d bytes through", key, value, s.MaxBody)
		}
	})
}
