package store

import (
	"context"
	"encoding/json"
	"maps"
	"time"

	"holdfast/internal/core/account"
)

const pollID = "poll"

// Poll is what is remembered between rounds of looking at usage endpoints. The zero value
// is that of a poller that never ran.
type Poll struct {
	// RoundAt is when the newest round began.
	RoundAt time.Time `json:"round_at,omitzero"`
	// Clocks are by account; one that was never looked at may have none.
	Clocks map[account.ID]Clock `json:"clocks,omitempty"`
}

// Clock is one account's turn at being looked at. The zero value is due at once.
type Clock struct {
	// NextAt is the earliest instant of the next look.
	NextAt time.Time `json:"next_at,omitzero"`
	// LookedAt is when the newest look began, ReadAt when one last brought a reading.
	LookedAt time.Time `json:"looked_at,omitzero"`
	ReadAt   time.Time `json:"read_at,omitzero"`
	// Failures counts the looks that failed since one last succeeded; Trouble says in words
	// why the last of them did.
	Failures int    `json:"failures,omitempty"`
	Trouble  string `json:"trouble,omitempty"`
	// AnswerAt is the newest reading of the account's allowance that came with an answer;
	// zero as long as its answers were never seen to tell any.
	AnswerAt time.Time `json:"answer_at,omitzero"`
	// Unparked counts the times that a look ended a parking for funds, one soon after the
	// other; UnparkedAt is the last of them.
	Unparked   int       `json:"unparked,omitempty"`
	UnparkedAt time.Time `json:"unparked_at,omitzero"`
	// PointAt is the instant of the account's newest point of history.
	PointAt time.Time `json:"point_at,omitzero"`
}

// PollRecord is the Poll as stored. Values are shared: they MUST NOT be changed.
type PollRecord struct {
	Poll
	Revision int64
}

// Poll reads what is remembered between rounds.
func (s *Store) Poll(ctx context.Context) (PollRecord, error) {
	v, err := s.Read(ctx, Query{Poll: true})
	return v.Poll, err
}

// ChangePoll applies change to what is remembered between rounds and writes it; when
// another process wrote in between, change is applied again to what that wrote. base is the
// record as last read. change MUST NOT alter its argument in place.
func (s *Store) ChangePoll(ctx context.Context, base PollRecord, change func(Poll) Poll) (PollRecord, error) {
	var next Poll
	written, err := s.rewrite(ctx, "the poll", Record{Key: Key{KindPoll, pollID}, Revision: base.Revision}, func(stored Record, again bool) (body []byte, err error) {
		if again {
			if base, err = pollOf(stored); err != nil {
				return nil, err
			}
		}
		next = change(base.Poll)
		return json.Marshal(next)
	})
	if err != nil {
		return base, err
	}
	return PollRecord{next, written.Revision}, nil
}

func pollOf(r Record) (PollRecord, error) {
	p := PollRecord{Revision: r.Revision}
	if r.Revision == 0 {
		return p, nil
	}
	if json.Unmarshal(r.Body, &p.Poll) != nil {
		p.Poll = Poll{} // one that cannot be read is begun anew
	}
	return p, nil
}

// forgetClock removes an account's clock, if there is one, and returns the instant of the
// newest point of its history.
func (s *Store) forgetClock(ctx context.Context, id account.ID) (time.Time, error) {
	p, err := s.Poll(ctx)
	if err != nil {
		return time.Time{}, err
	}
	clock, ok := p.Clocks[id]
	if !ok {
		return time.Time{}, nil
	}
	_, err = s.ChangePoll(ctx, p, func(p Poll) Poll {
		p.Clocks = maps.Clone(p.Clocks)
		delete(p.Clocks, id)
		return p
	})
	return clock.PointAt, err
}
