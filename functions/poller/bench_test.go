package main_test

import (
	"testing"

	"holdfast/internal/test/functiontest"
)

// BenchmarkWeight is the size of the program, and of its zip file.
func BenchmarkWeight(b *testing.B) { functiontest.Weigh(b, functiontest.Poller(b)) }

// BenchmarkStart is the time from exec to the first poll.
func BenchmarkStart(b *testing.B) { functiontest.Starts(b, functiontest.Poller(b)) }
