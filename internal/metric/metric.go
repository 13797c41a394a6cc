// Package metric says what holdfast measures, and computes it.
//
// # What it decides
//
// Definitions lists every metric there is: its name, unit, dimensions, and which function
// emits it. OfRequest makes the data of one request, for the gateway; OfFleet the data of
// one round, for the poller. Lines writes data in CloudWatch's embedded metric format, so
// that a gateway measures by logging and calls nobody on the request path.
//
// # Words
//
// A datum is one value of one metric at an instant. Dimensions tell series of one metric
// apart. Every pair of a metric and its dimensions' values is a series, and CloudWatch
// charges by the series: that is why nothing here has a dimension that no panel or alarm
// reads, why per-minute windows are not measured, and why only accounts under policy
// "order" have a Serving.
//
// Zeros are data: an alarm must be able to tell that nothing happened from nothing being
// known.
//
// # Never
//
// No I/O and no clock. No dimension takes a value from a client or an upstream: names of
// accounts are the owner's, all others come from fixed sets.
package metric

import (
	"slices"
	"time"
)

// Namespace is the one that every metric is in.
const Namespace = "Holdfast"

// Name is a metric's name.
type Name string

// What the gateway emits, with each request.
const (
	// Requests counts requests by the account that served (None where none did) and what
	// became of them.
	Requests Name = "Requests"
	// PinsKept, PinsMoved, PinsNew and PinsNone count requests by what X-Holdfast-Pin said.
	PinsKept  Name = "PinsKept"
	PinsMoved Name = "PinsMoved"
	PinsNew   Name = "PinsNew"
	PinsNone  Name = "PinsNone"
	// Rejections counts what upstreams refused, by the kind it was taken for.
	Rejections Name = "Rejections"
	// AddedLatency is how long the gateway itself took before it sent the request on.
	AddedLatency Name = "AddedLatency"
	// CacheReadShare is the share of a prompt that was read from the provider's cache.
	CacheReadShare Name = "CacheReadShare"
	// ConversationKey counts requests by where their conversation's key was found.
	ConversationKey Name = "ConversationKey"
	// Yielded counts background requests that were turned away.
	Yielded Name = "Yielded"
	// StoreUnavailable counts requests that were refused because the store did not answer.
	StoreUnavailable Name = "StoreUnavailable"
)

// What the poller emits, with each round.
const (
	// Utilization is how full a window is: a fraction.
	Utilization Name = "Utilization"
	// HoursToReset is how long a window has until it is empty again.
	HoursToReset Name = "HoursToReset"
	// ReadingAge is how old the newest reading of an account is, and of a provider's accounts
	// the newest of all; accounts without a usage endpoint have none, and count as 0.
	ReadingAge Name = "ReadingAge"
	// LeastUtilization is the utilization of a provider's emptiest account.
	LeastUtilization Name = "LeastUtilization"
	// Exhausted is 1 when LeastUtilization is at the policy's line: no account has room.
	Exhausted Name = "Exhausted"
	// ReadyAccounts counts the accounts that a new conversation could be placed on.
	ReadyAccounts Name = "ReadyAccounts"
	// Serving is 1 for the account that policy order gives new conversations to, 0 for others.
	Serving Name = "Serving"
	// Parked is 1 for an account that needs its owner.
	Parked Name = "Parked"
	// RefreshFailures is how often in a row the renewal of a login has failed; at least
	// FailuresInARow once it is refused for good, while the login goes on.
	RefreshFailures Name = "RefreshFailures"
	// PollerRounds counts rounds that were run to their end.
	PollerRounds Name = "PollerRounds"
)

// FailuresInARow is how many renewals must have failed one after another for the login to
// need its owner. Renewals begin at half of a token's life, so that there is time left then.
const FailuresInARow = 3

// Unit is CloudWatch's word for what a value counts.
type Unit string

const (
	Count        Unit = "Count"
	Seconds      Unit = "Seconds"
	Milliseconds Unit = "Milliseconds"
	Unitless     Unit = "None"
)

// Names of dimensions.
const (
	Provider = "Provider"
	Account  = "Account"
	Window   = "Window"
	Outcome  = "Outcome"
	Kind     = "Kind"
	Source   = "Source"
)

// None is the value of a dimension that nothing applies to.
const None = "none"

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
	{Requests, Count, Gateway, [][]string{{Provider, Account, Outcome}}},
	{PinsKept, Count, Gateway, [][]string{{}}},
	{PinsMoved, Count, Gateway, [][]string{{}}},
	{PinsNew, Count, Gateway, [][]string{{}}},
	{PinsNone, Count, Gateway, [][]string{{}}},
	{Rejections, Count, Gateway, [][]string{{Kind}}},
	{AddedLatency, Milliseconds, Gateway, [][]string{{}}},
	{CacheReadShare, Unitless, Gateway, [][]string{{}}},
	{ConversationKey, Count, Gateway, [][]string{{Source}}},
	{Yielded, Count, Gateway, [][]string{{}}},
	{StoreUnavailable, Count, Gateway, [][]string{{}}},

	{Utilization, Unitless, Poller, [][]string{{Account, Window}}},
	{HoursToReset, Unitless, Poller, [][]string{{Account, Window}}},
	{ReadingAge, Seconds, Poller, [][]string{{Account}, {Provider}}},
	{LeastUtilization, Unitless, Poller, [][]string{{Provider}}},
	{Exhausted, Unitless, Poller, [][]string{{Provider}}},
	{ReadyAccounts, Count, Poller, [][]string{{Provider}}},
	{Serving, Unitless, Poller, [][]string{{Provider, Account}}},
	{Parked, Unitless, Poller, [][]string{{Account}}},
	{RefreshFailures, Count, Poller, [][]string{{Account}}},
	{PollerRounds, Count, Poller, [][]string{{}}},
}

// Of returns the definition of a metric; the zero Definition where there is none.
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

func flag(on bool) float64 {
	if on {
		return 1
	}
	return 0
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
