// Package metric says what holdfast measures, and computes it.
//
// # What it decides
//
// Definitions lists every metric there is: its name, unit, dimensions, and which function
// emits it. OfRequest makes the data of one request, for the gateway; OfFleet the data of
// one round, for the poller. FiguresOf computes what a person reads of a round and no alarm
// does. Lines writes data in CloudWatch's embedded metric format, so that the functions
// measure by logging and call nobody.
//
// # Words
//
// A datum is one value of one metric at an instant. Dimensions tell series of one metric
// apart. Every pair of a metric and its dimensions' values is a series, and CloudWatch
// charges for each series in each hour in which it has a datum. Therefore a figure is a
// metric only if an alarm reads it, and it is written only while it has something to say:
// no datum means that nothing is wrong. Silence of the poller itself is heard by AWS's own
// count of its invocations, which costs nothing.
//
// # Never
//
// No I/O and no clock. No dimension takes a value from a client or an upstream: names of
// accounts and of the table are the owner's, all others come from fixed sets.
package metric

import (
	"slices"
	"time"
)

// Namespace is the one that every metric is in.
const Namespace = "Holdfast"

// Name is a metric's name.
type Name string

// The metrics.
const (
	// StoreUnavailable counts requests that were refused because the store did not answer. The
	// gateway emits it with such a request.
	StoreUnavailable Name = "StoreUnavailable"
	// Exhausted is 1 while no account of a provider has room. The poller emits it, as the
	// following, in each round in which it is so.
	Exhausted Name = "Exhausted"
	// ReadingAge is how old the newest reading of a provider's accounts is, in seconds, once
	// that is more than Blind. Only accounts that have a usage endpoint count.
	ReadingAge Name = "ReadingAge"
	// NeedsOwner is Parked or RenewalFailing for an account whose owner has to act.
	NeedsOwner Name = "NeedsOwner"
)

// Values of NeedsOwner.
const (
	Parked         = 1.0
	RenewalFailing = 2.0
)

// FailuresInARow is how many renewals of a login must have failed one after another before
// its owner is told. Renewals begin at half of a token's life, so that there is time left.
const FailuresInARow = 3

// Blind is how old the newest reading of a provider may be.
const Blind = 20 * time.Minute

// Unit is CloudWatch's word for what a value counts.
type Unit string

const (
	Count    Unit = "Count"
	Seconds  Unit = "Seconds"
	Unitless Unit = "None"
)

// Names of dimensions.
const (
	// Table is the name of the table, which tells one holdfast from another in the same AWS
	// account and region.
	Table    = "Table"
	Provider = "Provider"
	Account  = "Account"
)

// Emitter is the function that a metric comes from.
type Emitter string

const (
	Gateway Emitter = "gateway"
	Poller  Emitter = "poller"
)

// Definition describes one metric.
type Definition struct {
	Name Name
	Unit Unit
	From Emitter
	// Dimensions are the sets of dimensions that it is emitted with; an empty set is a
	// metric without any.
	Dimensions [][]string
}

// Definitions are all the metrics there are.
var Definitions = []Definition{
	{StoreUnavailable, Count, Gateway, [][]string{{Table}}},
	{Exhausted, Unitless, Poller, [][]string{{Table, Provider}}},
	{ReadingAge, Seconds, Poller, [][]string{{Table, Provider}}},
	{NeedsOwner, Unitless, Poller, [][]string{{Table, Account}}},
}

// Of returns the definition of a metric; the zero Definition where none exists.
func Of(name Name) Definition {
	for _, d := range Definitions {
		if d.Name == name {
			return d
		}
	}
	return Definition{}
}

// Dimension is a dimension with its value.
type Dimension struct{ Name, Value string }

// Datum is one value of a metric.
type Datum struct {
	Name       Name
	Value      float64 // finite
	Dimensions []Dimension
}

// Defined reports whether a datum is one of a metric in Definitions, with dimensions that
// it has there.
func (d Datum) Defined() bool {
	var names []string
	for _, each := range d.Dimensions {
		if each.Value == "" {
			return false
		}
		names = append(names, each.Name)
	}
	return slices.ContainsFunc(Of(d.Name).Dimensions, func(set []string) bool { return slices.Equal(set, names) })
}

func datum(name Name, value float64, dimensions ...Dimension) Datum {
	return Datum{Name: name, Value: value, Dimensions: dimensions}
}
