package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"holdfast/internal/core/usage"
)

// Setting describes one setting: its name, its default, what it may be, and what it is
// for. Registry lists them all.
type Setting struct {
	Name string
	// Default as it would be typed.
	Default string
	// Range says in words which values are allowed.
	Range string
	// About is one line on what the setting does.
	About string

	// parse writes a value into Settings; it is false when the value is not allowed.
	parse func(*Settings, string) bool
	show  func(Settings) string
}

// registry is every setting there is, in the order listings show them. A new setting
// MUST get a field in Settings and an entry here; nothing else.
var registry = []Setting{
	lasting("pin_ttl", "1h", "how long a conversation keeps its account after its last activity",
		func(s *Settings) *time.Duration { return &s.PinTTL }),
	lasting("bound_pin_ttl", "720h", "the same for conversations that carry state only their account can read",
		func(s *Settings) *time.Duration { return &s.BoundPinTTL }),
	lasting("move_after", "60s", "a conversation waits out any block of its account that is shorter",
		func(s *Settings) *time.Duration { return &s.MoveAfter }),
	share("reserve", "0.15", "share of the week that pacing keeps back",
		func(s *Settings) *float64 { return &s.Reserve }),
	share("short_window_line", "0.80", "where the five-hour window begins to count against an account",
		func(s *Settings) *float64 { return &s.ShortWindowLine }),
	share("exclude_line", "0.97", "where a window all but excludes an account",
		func(s *Settings) *float64 { return &s.ExcludeLine }),
	count("trial_requests", "3", "conversations given to an account never seen before it ranks last",
		func(s *Settings) *int64 { return &s.TrialRequests }),
	share("background_headroom", "0.15", "below this headroom background requests are turned away",
		func(s *Settings) *float64 { return &s.BackgroundHeadroom }),
	lasting("fresh_for", "10m", "age up to which a reading counts in full",
		func(s *Settings) *time.Duration { return &s.FreshFor }),
	lasting("bare_pause", "5s", "pause of a model after a 429 that carries no limit headers",
		func(s *Settings) *time.Duration { return &s.BarePause }),
	lasting("probe_interval", "10m", "how often a blocked account may be tried with one request",
		func(s *Settings) *time.Duration { return &s.ProbeInterval }),
	lasting("poll_interval", "5m", "how often each account's usage is looked up",
		func(s *Settings) *time.Duration { return &s.PollInterval }),
	size("max_body", "32MiB", "largest request body, also once decompressed",
		func(s *Settings) *int64 { return &s.MaxBody }),
	lasting("upstream_timeout", "16m", "how long an account's provider may take to begin its answer",
		func(s *Settings) *time.Duration { return &s.UpstreamTimeout }),
	lastingOrOff("keep_alive", "15s", "after how long a silence the client of a stream is sent a sign of life",
		func(s *Settings) *time.Duration { return &s.KeepAlive }),
	weight("weight_expiring", "1", "weight of the weekly allowance that will lapse unused at its reset",
		func(s *Settings) *float64 { return &s.WeightExpiring }),
	weight("weight_pace", "1", "weight of being behind a steady pace through the week",
		func(s *Settings) *float64 { return &s.WeightPace }),
	weight("weight_short", "1", "weight of the room in the five-hour window",
		func(s *Settings) *float64 { return &s.WeightShort }),
	weight("weight_model", "1", "weight of keeping accounts with room for the default models free for those",
		func(s *Settings) *float64 { return &s.WeightModel }),
	patterns("expensive_models", "*fable*", "models steered away from accounts that have room for the default ones",
		func(s *Settings) *[]string { return &s.ExpensiveModels }),
	patterns("default_models", "*sonnet*", "models that most work is done with",
		func(s *Settings) *[]string { return &s.DefaultModels }),
	toggle("yield_known_background", "true", "titles, summaries, suggestions and other work that a known client does beside a session, and that nobody waits for, yield too",
		func(s *Settings) *bool { return &s.YieldKnownBackground }),
	origins("allowed_origins", "", "pages that a browser lets read answers",
		func(s *Settings) *[]string { return &s.AllowedOrigins }),
	priceList("prices", "", "prices of models that the list in the program lacks, or has wrong, for `holdfast usage`",
		func(s *Settings) *[]usage.Price { return &s.Prices }),
}

// defaults are the settings without any override.
var defaults = func() Settings {
	var s Settings
	for _, setting := range registry {
		if !setting.parse(&s, setting.Default) {
			panic("catalog: the default of " + setting.Name + " is not allowed")
		}
	}
	return s
}()

// Registry lists every setting in the order listings show them.
func Registry() []Setting { return slices.Clone(registry) }

// In renders the setting's value in s as it would be typed. What equals the default is
// written as that is: 60s, not 1m.
func (s Setting) In(settings Settings) string {
	if text := s.show(settings); text != s.show(defaults) {
		return text
	}
	return s.Default
}

// Settings are the figures in force. An override that this program does not know, or
// whose value it does not allow, counts as not set: another version may have written it.
// The lists in the result are shared and MUST NOT be changed.
func (c Catalog) Settings() Settings {
	s := defaults
	for _, setting := range registry {
		if value, ok := c.Overrides[setting.Name]; ok {
			setting.parse(&s, value)
		}
	}
	return s
}

// Set overrides a setting.
func (c Catalog) Set(name, value string) (Catalog, error) {
	setting, err := find(name)
	if err != nil {
		return Catalog{}, err
	}
	value = strings.TrimSpace(value)
	var scratch Settings
	if !setting.parse(&scratch, value) {
		return Catalog{}, Invalid(fmt.Sprintf("%s must be %s", name, setting.Range))
	}
	c.Overrides = maps.Clone(c.Overrides)
	if c.Overrides == nil {
		c.Overrides = map[string]string{}
	}
	c.Overrides[name] = value
	return c, nil
}

// Reset takes an override away. Resetting what is at its default changes nothing.
func (c Catalog) Reset(name string) (Catalog, error) {
	if _, err := find(name); err != nil {
		return Catalog{}, err
	}
	c.Overrides = maps.Clone(c.Overrides)
	delete(c.Overrides, name)
	return c, nil
}

func find(name string) (Setting, error) {
	for _, setting := range registry {
		if setting.Name == name {
			return setting, nil
		}
	}
	near := nearest(name)
	if len(near) == 0 {
		return Setting{}, Invalid("there is no such setting; `holdfast settings` lists them all")
	}
	return Setting{}, Invalid("there is no such setting; did you mean " + strings.Join(near, " or ") + "?")
}

// nearest lists settings whose names resemble name, the most alike first, three at most.
func nearest(name string) []string {
	name = strings.ReplaceAll(strings.ToLower(name), "-", "_")
	if len(name) < 3 || len(name) > 40 {
		return nil
	}
	type candidate struct {
		name string
		far  int
	}
	var near []candidate
	for _, setting := range registry {
		far := distance(name, setting.Name)
		if strings.Contains(setting.Name, name) || strings.Contains(name, setting.Name) {
			far = min(far, 1)
		}
		if far <= 3 {
			near = append(near, candidate{setting.Name, far})
		}
	}
	slices.SortStableFunc(near, func(a, b candidate) int { return a.far - b.far })
	var names []string
	for _, n := range near[:min(3, len(near))] {
		names = append(names, n.name)
	}
	return names
}

// distance is the number of bytes to insert, delete or replace to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
