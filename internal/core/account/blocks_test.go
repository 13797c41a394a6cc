package account_test

import (
	"time"

	"holdfast/internal/core/account"
)

// blocksFor are the blocks of a state that hold for what a request asks, whatever its owner
// allows; blockedUntil is one that ends last of those for a family and model.
func blocksFor(s account.State, now time.Time, a account.Ask) []account.Block {
	var active []account.Block
	for _, b := range s.Blocks {
		if b.Active(now) && b.Scopes(a) {
			active = append(active, b)
		}
	}
	return active
}

func blockedUntil(s account.State, now time.Time, family, model string) (last account.Block, blocked bool) {
	for _, b := range blocksFor(s, now, account.Ask{Family: family, Model: model}) {
		if !blocked || b.Until.After(last.Until) {
			last, blocked = b, true
		}
	}
	return last, blocked
}
