// Package logtest keeps what is logged, for tests that read a log while others still write
// it: goroutines of the code under test, or processes whose output goes there. It decides
// nothing about what belongs into a log, and forgets nothing of it.
package logtest

import (
	"bytes"
	"sync"
)

// Log is what was written so far. The zero value is empty and ready; it MUST NOT be copied.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write appends to the log.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String is everything that was written so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
