package catalog

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast/internal/core/usage"
)

// Bounds of the settings' values.
const (
	// LongestDuration keeps instants reckoned from a setting far from the end of the clock.
	LongestDuration = 87600 * time.Hour
	shortest        = time.Second
	mostTrials      = 1000
	// heaviest keeps sums of weighted terms finite.
	heaviest     = 1000
	smallestBody = 1 << 10
	largestBody  = 1 << 30
	mostPatterns = 50
	longestText  = 100
)

func lasting(name, fallback, about string, field func(*Settings) *time.Duration) Setting {
	return Setting{
		Name: name, Default: fallback, About: about,
		Range: "a duration from 1s to 87600h, such as 90s, 15m, 12h or 30d",
		parse: func(s *Settings, text string) bool {
			d, ok := Duration(text)
			if !ok || d < shortest || d > LongestDuration {
				return false
			}
			*field(s) = d
			return true
		},
		show: func(s Settings) string { return durationText(*field(&s)) },
	}
}

// lastingOrOff is a duration that may also be 0, which switches off what it is for.
func lastingOrOff(name, fallback, about string, field func(*Settings) *time.Duration) Setting {
	s := lasting(name, fallback, about, field)
	s.Range = "0 (off) or " + s.Range
	parse, show := s.parse, s.show
	s.parse = func(to *Settings, text string) bool {
		if text == "0" || text == "0s" {
			*field(to) = 0
			return true
		}
		return parse(to, text)
	}
	s.show = func(of Settings) string {
		if *field(&of) == 0 {
			return "0"
		}
		return show(of)
	}
	return s
}

// durationText drops the zero parts that time.Duration prints: 1h, not 1h0m0s.
func durationText(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// Duration reads a duration from 0 up as Go writes it, with days before it: 3d, 1d12h, 90m.
func Duration(text string) (time.Duration, bool) {
	days, rest, found := strings.Cut(text, "d")
	if !found {
		days, rest = "0", text
	}
	n, err := strconv.ParseUint(days, 10, 16)
	if err != nil || rest == "" && !found {
		return 0, false
	}
	var d time.Duration
	if rest != "" {
		if d, err = time.ParseDuration(rest); err != nil || d < 0 {
			return 0, false
		}
	}
	return time.Duration(n)*24*time.Hour + d, d <= LongestDuration
}

// share is a fraction from 0 to 1; weight a factor from 0 up.
func share(name, fallback, about string, field func(*Settings) *float64) Setting {
	return number(name, fallback, about, "a fraction from 0 to 1, such as 0.15 or 15%", 1, field)
}

func weight(name, fallback, about string, field func(*Settings) *float64) Setting {
	return number(name, fallback, about, "a number from 0 to 1000, such as 1.5", heaviest, field)
}

func number(name, fallback, about, allowed string, most float64, field func(*Settings) *float64) Setting {
	return Setting{
		Name: name, Default: fallback, About: about, Range: allowed,
		parse: func(s *Settings, text string) bool {
			v, ok := Decimal(text)
			if most <= 1 {
				v, ok = Share(text)
			}
			if !ok || v > most {
				return false
			}
			*field(s) = v
			return true
		},
		show: func(s Settings) string { return strconv.FormatFloat(*field(&s), 'g', -1, 64) },
	}
}

// Decimal reads a number from 0 up as people write it: digits, with a point or without.
func Decimal(text string) (float64, bool) {
	if !decimal.MatchString(text) {
		return 0, false
	}
	v, err := strconv.ParseFloat(text, 64)
	return v, err == nil
}

// Share reads a fraction as people write it, in percent too.
func Share(text string) (float64, bool) {
	digits, percent := strings.CutSuffix(text, "%")
	v, ok := Decimal(strings.TrimSpace(digits))
	if percent {
		v /= 100
	}
	return v, ok
}

var decimal = regexp.MustCompile(`^([0-9]+\.?[0-9]*|\.[0-9]+)$`)

func count(name, fallback, about string, field func(*Settings) *int64) Setting {
	return Setting{
		Name: name, Default: fallback, About: about, Range: "a whole number from 0 to 1000",
		parse: func(s *Settings, text string) bool {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil || n < 0 || n > mostTrials {
				return false
			}
			*field(s) = n
			return true
		},
		show: func(s Settings) string { return strconv.FormatInt(*field(&s), 10) },
	}
}

// units are the sizes a body limit may be written in, the largest first.
var units = []struct {
	suffix string
	bytes  int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"KB", 1e3}}

func size(name, fallback, about string, field func(*Settings) *int64) Setting {
	return Setting{
		Name: name, Default: fallback, About: about,
		Range: "a size from 1KiB to 1GiB, such as 32MiB, 10MB or 33554432 (bytes)",
		parse: func(s *Settings, text string) bool {
			factor := int64(1)
			for _, u := range units {
				if digits, ok := strings.CutSuffix(text, u.suffix); ok {
					text, factor = strings.TrimRight(digits, " "), u.bytes
					break
				}
			}
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil || n < 0 || n > largestBody/factor || n*factor < smallestBody {
				return false
			}
			*field(s) = n * factor
			return true
		},
		show: func(s Settings) string {
			n := *field(&s)
			for _, u := range units {
				if n%u.bytes == 0 {
					return strconv.FormatInt(n/u.bytes, 10) + u.suffix
				}
			}
			return strconv.FormatInt(n, 10)
		},
	}
}

func patterns(name, fallback, about string, field func(*Settings) *[]string) Setting {
	return Setting{
		Name: name, Default: fallback, About: about,
		Range: `up to 50 model patterns between commas, such as "*fable*,claude-opus-?", or "" for none`,
		parse: func(s *Settings, text string) bool {
			list, ok := patternList(text)
			if ok {
				*field(s) = list
			}
			return ok
		},
		show: func(s Settings) string { return strings.Join(*field(&s), ",") },
	}
}

func patternList(text string) ([]string, bool) {
	list := []string{}
	for item := range strings.SplitSeq(text, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		_, err := path.Match(item, "")
		odd := strings.ContainsFunc(item, func(r rune) bool { return r <= ' ' || r > '~' })
		if err != nil || odd || len(item) > longestText {
			return nil, false
		}
		list = append(list, item)
	}
	return list, len(list) <= mostPatterns
}

func toggle(name, fallback, about string, field func(*Settings) *bool) Setting {
	return Setting{
		Name: name, Default: fallback, About: about, Range: "true or false",
		parse: func(s *Settings, text string) bool {
			if text != "true" && text != "false" {
				return false
			}
			*field(s) = text == "true"
			return true
		},
		show: func(s Settings) string { return strconv.FormatBool(*field(&s)) },
	}
}

// priceList is a setting of models' prices.
func priceList(name, fallback, about string, field func(*Settings) *[]usage.Price) Setting {
	return Setting{
		Name: name, Default: fallback, About: about,
		Range: `up to 50 prices between commas, each MODEL=INPUT/CACHE_READ/CACHE_WRITE/OUTPUT in US dollars for a million tokens, such as "gpt-5.5*=1.25/0.125/1.25/10", or "" for none`,
		parse: func(s *Settings, text string) bool {
			var list []usage.Price
			for item := range strings.SplitSeq(text, ",") {
				if strings.TrimSpace(item) == "" {
					continue
				}
				p, ok := usage.ParsePrice(item)
				if !ok || len(p.Model) > longestText || len(list) == mostPrices {
					return false
				}
				list = append(list, p)
			}
			*field(s) = list
			return true
		},
		show: func(s Settings) string {
			var all []string
			for _, p := range *field(&s) {
				all = append(all, p.String())
			}
			return strings.Join(all, ",")
		},
	}
}

const mostPrices = 50

// origins is a setting of browsers' origins.
func origins(name, fallback, about string, field func(*Settings) *[]string) Setting {
	return Setting{
		Name: name, Default: fallback, About: about,
		Range: `up to 20 origins between commas, each SCHEME://HOST or SCHEME://HOST:PORT without a path, such as "https://app.example.com,http://localhost:5173", or "" for none`,
		parse: func(s *Settings, text string) bool {
			var list []string
			for item := range strings.SplitSeq(text, ",") {
				if strings.TrimSpace(item) == "" {
					continue
				}
				origin, ok := parseOrigin(item)
				if !ok || len(origin) > 2*longestText || len(list) == mostOrigins {
					return false
				}
				if !slices.Contains(list, origin) {
					list = append(list, origin)
				}
			}
			*field(s) = list
			return true
		},
		show: func(s Settings) string { return strings.Join(*field(&s), ",") },
	}
}

const mostOrigins = 20
