package usage

import (
	"encoding/json"
	"errors"
	"slices"
)

// Record is what was counted in an hour or a day, as it is kept.
type Record struct {
	Rows Rows
	// Taken is the newest batch of each process that is in Rows.
	Taken map[string]int64
}

// mostTaken bounds the processes that are remembered. A batch is sent again within minutes,
// and no hour has so many processes with a batch of an unknown end.
const mostTaken = 2000

// Take counts a batch of a process. It returns false where the batch is in the record.
// Batches of one process come in the order of their numbers.
func (r *Record) Take(process string, b Batch) bool {
	if r.Taken[process] >= b.Number {
		return false
	}
	if r.Rows == nil {
		r.Rows = Rows{}
	}
	if r.Taken == nil {
		r.Taken = map[string]int64{}
	}
	r.Rows.AddAll(b.Rows)
	if _, there := r.Taken[process]; !there && len(r.Taken) >= mostTaken {
		for name := range r.Taken {
			delete(r.Taken, name)
			break
		}
	}
	r.Taken[process] = b.Number
	return true
}

// stored is the stored form: each name once, and rows of numbers.
type stored struct {
	Names []string         `json:"names"`
	Rows  [][]int64        `json:"rows"` // account, model, key and agent by their place in Names; then the counts
	Taken map[string]int64 `json:"taken,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (r Record) MarshalJSON() ([]byte, error) {
	s := stored{Names: []string{}, Rows: [][]int64{}, Taken: r.Taken}
	place := map[string]int64{}
	at := func(name string) int64 {
		n, there := place[name]
		if !there {
			n = int64(len(s.Names))
			place[name] = n
			s.Names = append(s.Names, name)
		}
		return n
	}
	for _, who := range r.Rows.sorted() {
		row := []int64{at(who.Account), at(who.Model), at(who.Key), at(who.Agent)}
		c := r.Rows[who]
		for _, n := range c.fields() {
			row = append(row, *n)
		}
		for len(row) > 5 && row[len(row)-1] == 0 {
			row = row[:len(row)-1]
		}
		s.Rows = append(s.Rows, row)
	}
	return json.Marshal(s)
}

// UnmarshalJSON implements json.Unmarshaler. A row that cannot be read is an error: counts
// are not to be wrong without a word.
func (r *Record) UnmarshalJSON(text []byte) error {
	var s stored
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	r.Rows, r.Taken = Rows{}, s.Taken
	for _, row := range s.Rows {
		if len(row) < 4 || slices.ContainsFunc(row[:4], func(n int64) bool { return n < 0 || n >= int64(len(s.Names)) }) {
			return errors.New("a row of usage names nothing")
		}
		var c Counts
		fields := c.fields()
		if len(row)-4 > len(fields) {
			return errors.New("a row of usage has counts that this version does not know")
		}
		for i, n := range row[4:] {
			*fields[i] = n
		}
		r.Rows.Add(Who{s.Names[row[0]], s.Names[row[1]], s.Names[row[2]], s.Names[row[3]]}, c)
	}
	return nil
}
