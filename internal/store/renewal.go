package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"holdfast/internal/core/account"
)

// Renewal is how far the renewal of an account's login has come: what keeps a refresh
// token from being sent twice, and what the owner and the alarms are told.
type Renewal struct {
	// Spending is set before a refresh token is sent and removed when it is known what
	// became of it. Nil: no token's fate is open.
	Spending *Spending `json:"spending,omitempty"`
	// Refused are keyed hashes of refresh tokens that the provider refused for good,
	// oldest first. None of them is ever sent again.
	Refused []string `json:"refused,omitempty"`
	// RenewedAt is when a new grant was last saved; zero for never.
	RenewedAt time.Time `json:"renewed_at,omitzero"`
	// Failures counts the tries since then that brought no grant, FailingSince is the
	// first of them, and Failure a word for the last. RetryAt is when to try again.
	Failures     int       `json:"failures,omitempty"`
	FailingSince time.Time `json:"failing_since,omitzero"`
	Failure      string    `json:"failure,omitempty"`
	RetryAt      time.Time `json:"retry_at,omitzero"`
	// Revision is the stored record's; 0 for none.
	Revision int64 `json:"-"`
}

// Spending says that a refresh token was, or is just being, sent.
type Spending struct {
	// Token is the keyed hash of the refresh token, Generation that of its credential.
	Token      string `json:"token"`
	Generation int64  `json:"generation"`
	// By is who sends it; empty when nobody does any more and what became of it is not
	// known. Since is when that one began.
	By    string    `json:"by,omitempty"`
	Since time.Time `json:"since"`
	// Lost: an answer that may have held the new tokens did not arrive.
	Lost bool `json:"lost,omitempty"`
}

// Renewals reads the renewals of accounts, all in one round trip; the zero Renewal for an
// account whose login was never renewed.
func (s *Store) Renewals(ctx context.Context, ids []account.ID) (map[account.ID]Renewal, error) {
	all := make(map[account.ID]Renewal, len(ids))
	keys := make([]Key, 0, len(ids))
	for _, id := range ids {
		if _, twice := all[id]; !twice {
			keys = append(keys, Key{KindRenewal, string(id)})
		}
		all[id] = Renewal{}
	}
	if len(keys) == 0 {
		return all, nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.within)
	defer cancel()
	records, err := s.backend.Get(ctx, keys)
	if err != nil {
		return nil, fmt.Errorf("read renewals: %w", err)
	}
	for _, r := range records {
		if all[account.ID(r.ID)], err = renewal(r); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// PutRenewal writes a renewal if the stored one is still the one that next was made from.
// It returns the stored one and whether it is ours. A write that fails with ErrUnavailable
// may have been applied.
func (s *Store) PutRenewal(ctx context.Context, id account.ID, next Renewal) (Renewal, bool, error) {
	body, err := json.Marshal(next)
	if err != nil {
		return Renewal{}, false, err
	}
	stored, ours, err := s.put(ctx, "renewal", Record{Key: Key{KindRenewal, string(id)}, Body: body}, Condition{Revision: next.Revision})
	if err != nil {
		return Renewal{}, false, err
	}
	kept, err := renewal(stored)
	return kept, ours, err
}

func renewal(r Record) (Renewal, error) {
	var kept Renewal
	if r.Revision == 0 {
		return kept, nil
	}
	if err := json.Unmarshal(r.Body, &kept); err != nil {
		return Renewal{}, fmt.Errorf("decode %s of %s: %w", r.Kind, r.ID, err)
	}
	kept.Revision = r.Revision
	return kept, nil
}
