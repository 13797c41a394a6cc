package usage

import (
	"path"
	"strconv"
	"strings"
)

// Price is what a model's tokens cost, in US dollars for a million of each.
type Price struct {
	// Model is a pattern of model names, as in path.Match; the first that fits counts.
	Model                                string
	Input, CacheRead, CacheWrite, Output float64
}

// PricesOf is when the list prices below were read.
const PricesOf = "2026-11"

// prices are the published list prices, without any discount, of
// platform.claude.com/docs/en/about-claude/pricing. A write to the cache counts as one of
// five minutes, since answers tell the sum of both lifetimes. Prices of other providers'
// models are the owner's to set.
var prices = []Price{
	{"claude-fable-5-1*", 10, 0.25, 12.50, 50},
	{"claude-fable-5*", 10, 1.00, 12.50, 50},
	{"claude-opus-5*", 5, 0.50, 6.25, 25},
	{"claude-opus-4-[5-8]*", 5, 0.50, 6.25, 25},
	{"claude-sonnet-5*", 2, 0.20, 2.50, 10},
	{"claude-sonnet-4-[56]*", 3, 0.30, 3.75, 15},
	{"claude-haiku-4-5*", 1, 0.10, 1.25, 5},
}

// PriceOf finds a model's price: the owner's own first, then the list's. It is false for a
// model whose price is not known.
func PriceOf(model string, own []Price) (Price, bool) {
	model = strings.ToLower(strings.TrimSpace(model))
	for _, list := range [][]Price{own, prices} {
		for _, p := range list {
			if fits, err := path.Match(strings.ToLower(p.Model), model); err == nil && fits {
				return p, true
			}
		}
	}
	return Price{}, false
}

// String is the price as ParsePrice reads it.
func (p Price) String() string {
	figure := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	return p.Model + "=" + figure(p.Input) + "/" + figure(p.CacheRead) + "/" + figure(p.CacheWrite) + "/" + figure(p.Output)
}

// Cost is what tokens cost at a price, in US dollars.
func (p Price) Cost(c Counts) float64 {
	return (float64(c.Input)*p.Input + float64(c.CacheRead)*p.CacheRead + float64(c.CacheWrite)*p.CacheWrite + float64(c.Output)*p.Output) / 1e6
}

// ParsePrice reads a price as an owner writes it: MODEL=INPUT/CACHE_READ/CACHE_WRITE/OUTPUT,
// in US dollars for a million tokens. It is false for anything else.
func ParsePrice(text string) (Price, bool) {
	model, figures, found := strings.Cut(strings.TrimSpace(text), "=")
	model = strings.TrimSpace(model)
	if _, err := path.Match(model, ""); !found || model == "" || err != nil {
		return Price{}, false
	}
	parts := strings.Split(figures, "/")
	if len(parts) != 4 {
		return Price{}, false
	}
	p := Price{Model: model}
	for i, to := range []*float64{&p.Input, &p.CacheRead, &p.CacheWrite, &p.Output} {
		v, err := strconv.ParseFloat(strings.TrimSpace(parts[i]), 64)
		if err != nil || !(v >= 0 && v < 1e6) {
			return Price{}, false
		}
		*to = v
	}
	return p, true
}
