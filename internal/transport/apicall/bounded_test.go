package apicall

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A timer that comes late was not late by itself: the process was frozen.
func TestFrozenProcessMayReadTheAnswer(t *testing.T) {
	for _, c := range []struct {
		late, want time.Duration
	}{{0, 10 * time.Second}, {heldUp - 1, 10 * time.Second}, {heldUp, 10*time.Second + heldUp}, {time.Hour, 10*time.Second + heldUp}} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			ctx, cancel := bounded(context.Background(), 10*time.Second, func(time.Time) time.Duration { return c.late })
			defer cancel()
			<-ctx.Done()
			if got := time.Since(begun); got != c.want {
				t.Errorf("%v late: got an end after %v, want %v", c.late, got, c.want)
			}
		})
	}
}
