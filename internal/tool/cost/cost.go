// Package cost says what a holdfast in AWS costs, from what it does.
//
//	busy := idle.Plus(perThousand.Times(100))
//	lines := cost.Bill(busy, true)
//
// # What it decides
//
// Which quantities AWS charges for, at what price (Prices), and how many of them an
// operation of the store, an invocation and a month come to. What a holdfast really does,
// such as how often a request writes, is counted by its caller: no frequency is known here.
//
// # Words
//
// A quantity is how many units of an item there are. Operations are what a table was asked
// for, in the units that DynamoDB charges: a read for each 4 KB of each item, a write for
// each 1 KB, and at least one for an item that is not there.
//
// # Never
//
// No I/O and no clock. It asks AWS for no price: those in Prices are as old as Dated says.
package cost

import (
	"cmp"
	"slices"
)

// Quantities are units by item.
type Quantities map[Item]float64

// Plus adds two sets of quantities.
func (q Quantities) Plus(other Quantities) Quantities {
	sum := Quantities{}
	for _, each := range []Quantities{q, other} {
		for item, n := range each {
			sum[item] += n
		}
	}
	return sum
}

// Times multiplies every quantity.
func (q Quantities) Times(n float64) Quantities {
	product := Quantities{}
	for item, units := range q {
		product[item] = units * n
	}
	return product
}

// Line is one item of a bill.
type Line struct {
	Item Item
	// Units is the whole quantity, also what of it is free.
	Units float64
	USD   float64
}

// Bill prices quantities, in the order of Prices. With free, what every AWS account has free
// in a month is not charged; the quantities are then to be a month's.
func Bill(q Quantities, free bool) []Line {
	var lines []Line
	for _, p := range Prices {
		units, charged := q[p.Item], q[p.Item]
		if units == 0 {
			continue
		}
		if free {
			charged = max(0, units-p.Free)
		}
		lines = append(lines, Line{p.Item, units, charged * p.USD})
	}
	return lines
}

// Total is the sum of a bill in USD.
func Total(lines []Line) float64 {
	sum := 0.0
	for _, l := range lines {
		sum += l.USD
	}
	return sum
}

// Largest is the line of a bill that costs most, and its share of the whole; zero values of
// a bill over nothing.
func Largest(lines []Line) (Line, float64) {
	total := Total(lines)
	if total == 0 {
		return Line{}, 0
	}
	l := slices.MaxFunc(lines, func(a, b Line) int { return cmp.Compare(a.USD, b.USD) })
	return l, l.USD / total
}

const (
	readUnit  = 4 << 10
	writeUnit = 1 << 10
	// HoursPerMonth is AWS's month, and RoundsPerMonth the rounds of a schedule that goes off
	// every minute.
	HoursPerMonth  = 730
	RoundsPerMonth = HoursPerMonth * 60
	gigabyte       = 1 << 30
)

// ReadUnits are the units of a strongly consistent read of one item of so many bytes, which
// is 0 for one that is not there.
func ReadUnits(bytes int) float64 { return units(bytes, readUnit) }

// WriteUnits are the units of a write, refused ones included, of an item that has so many
// bytes before and after it: the larger counts.
func WriteUnits(before, after int) float64 { return units(max(before, after), writeUnit) }

func units(bytes, each int) float64 { return float64(max(1, (bytes+each-1)/each)) }

// Gigabytes are bytes as AWS charges them.
func Gigabytes(bytes float64) float64 { return bytes / gigabyte }

// GBSeconds is what a function with so many MB of memory is charged for so many seconds.
func GBSeconds(megabytes, seconds float64) float64 { return megabytes / 1024 * seconds }
