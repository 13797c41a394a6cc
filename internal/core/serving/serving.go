package serving

import (
	"math"
	"slices"
	"time"

	"holdfast/internal/core/account"
	"holdfast/internal/core/catalog"
	"holdfast/internal/core/pick"
)

// Mode says whether the owner's hand or the rule made a switch.
type Mode string

const (
	// Manual: the owner changed the list.
	Manual Mode = "manual"
	// Reorder: the rule read the same list and found another.
	Reorder Mode = "reorder"
)

// Reason says why serving changed. It goes to the history: the set is fixed. The package
// comment tells which one wins.
type Reason string

const (
	Quota    Reason = "quota"
	Cooldown Reason = "cooldown"
	Returned Reason = "returned"
	Parked   Reason = "parked"
	Ordered  Reason = "order"
)

// Account is a side of a switch.
type Account struct {
	ID   account.ID `json:"id"`
	Name string     `json:"name"` // as it was then
	// Utilization is that of its fullest window then, as a fraction; null if none was known.
	Utilization *float64 `json:"utilization"`
}

// Switch is a change of the serving account.
type Switch struct {
	// N counts a provider's switches from 1.
	N      int64     `json:"n"`
	At     time.Time `json:"at"`
	From   Account   `json:"from"`
	To     Account   `json:"to"`
	Mode   Mode      `json:"mode"`
	Reason Reason    `json:"reason"`
}

// Record is what is stored of a provider: who serves, and the newest switches. The zero
// value is that of a provider where nobody ever served under policy order. Values are
// never changed in place.
type Record struct {
	Account account.ID `json:"account"`
	Name    string     `json:"name"`
	// At is when the record was last changed, and Catalog the revision of the catalog that
	// was known then. Views that are older change nothing.
	At      time.Time `json:"at"`
	Catalog int64     `json:"catalog"`
	// Ahead are the accounts that stood before the serving one in the list, those aside that
	// were drained.
	Ahead []account.ID `json:"ahead,omitempty"`
	// Switches are the newest, newest first: at most Recent.
	Switches []Switch `json:"switches,omitempty"`
}

// Recent bounds the switches that a record holds. Every request to a provider under policy
// order reads the record, so it stays within what a database reads at the least price.
const Recent = 8

// Full reports whether the record's switches MUST join the past before Next adds another,
// which leaves them out.
func (r Record) Full() bool { return len(r.Switches) >= Recent }

// Count is the number of switches there ever were.
func (r Record) Count() int64 {
	if len(r.Switches) == 0 {
		return 0
	}
	return r.Switches[0].N
}

// View is what one process knows of a provider.
type View struct {
	// Now is the instant it looks at. ReadAt is when the reading of the store began that it
	// knows this from.
	Now, ReadAt time.Time
	// Catalog is the revision of the catalog that Policy, Settings and the accounts are from.
	Catalog  int64
	Policy   catalog.Policy
	Settings catalog.Settings
	// Candidates are all accounts of the provider in the owner's order. What a candidate
	// says of one client's request does not matter here.
	Candidates []pick.Candidate
}

// Of returns the index of the serving account where the given one served last, −1 if nobody
// serves or the policy is not order.
func (v View) Of(last account.ID) int {
	if v.Policy.Name != catalog.Order {
		return -1
	}
	cs := v.unrestricted()
	for i := range cs {
		cs[i].Serving = cs[i].Account.ID == last
	}
	return pick.Pick(v.Now, v.Policy, v.Settings, pick.Request{}, cs).Chosen
}

func (v View) unrestricted() []pick.Candidate {
	cs := slices.Clone(v.Candidates)
	for i := range cs {
		cs[i].Serves, cs[i].Allowed, cs[i].Tried = true, true, false
	}
	return cs
}

// reach is how much older than a record a view may be and still be taken for one that a
// faster process overtook. Beyond it one of the two clocks is wrong, and a record dated
// hours ahead must not silence everybody else for hours.
const reach = 10 * time.Second

// overtaken reports whether the record was made from newer knowledge than the view.
func (v View) overtaken(r Record) bool {
	ahead := r.At.Sub(v.ReadAt)
	return v.Catalog < r.Catalog || (ahead > 0 && ahead <= reach)
}

// Next returns the record that the view asks for, and whether it is worth a write: serving
// changed, or who stands before it.
func (r Record) Next(v View) (Record, bool) {
	to := v.Of(r.Account)
	if to < 0 || v.overtaken(r) {
		return r, false
	}
	a := v.Candidates[to].Account
	ahead := v.ahead(to)
	if a.ID == r.Account && slices.Equal(ahead, r.Ahead) {
		return r, false
	}
	now := v.Now.UTC()
	next := Record{Account: a.ID, Name: a.Name, At: now, Catalog: v.Catalog, Ahead: ahead, Switches: r.Switches}
	if r.Account != "" && r.Account != a.ID {
		reason := r.why(v, to)
		s := Switch{N: r.Count() + 1, At: now, From: r.from(v), To: v.side(to), Mode: Reorder, Reason: reason}
		if reason == Ordered {
			s.Mode = Manual
		}
		next.Switches = []Switch{s}
		if !r.Full() {
			next.Switches = append(next.Switches, r.Switches...)
		}
	}
	return next, true
}

// ahead are the accounts that stand before candidate i and are not drained.
func (v View) ahead(i int) []account.ID {
	var ids []account.ID
	for _, c := range v.Candidates[:i] {
		if !c.Account.Draining {
			ids = append(ids, c.Account.ID)
		}
	}
	return ids
}

func (v View) index(id account.ID) int {
	return slices.IndexFunc(v.Candidates, func(c pick.Candidate) bool { return c.Account.ID == id })
}

// why is the reason that the record's account no longer serves, but candidate to.
func (r Record) why(v View, to int) Reason {
	cs := v.unrestricted()
	old := v.index(r.Account)
	if old < 0 || to < old {
		st := pick.Stand(v.Now, pick.Request{}, cs[to], v.Settings)
		if full, _ := v.full(to); st.Usable() && !pick.Over(full, v.Policy) {
			switch {
			case slices.Contains(r.Ahead, cs[to].Account.ID):
				return Returned
			case old >= 0:
				return Ordered
			}
		}
	}
	if old < 0 {
		return Ordered
	}
	switch st := pick.Stand(v.Now, pick.Request{}, cs[old], v.Settings); {
	case st.Reason == pick.Parked:
		return Parked
	case st.Reason == pick.Draining:
		return Ordered
	case st.Blocked(), st.Reason == pick.Refuses: // everything, for a host or an organization that is not its own
		return Cooldown
	}
	return Quota
}

// full is how full candidate i is, and whether anything is known of that.
func (v View) full(i int) (float64, bool) {
	_, full, known := pick.Fullest(v.Now, pick.Request{}, v.Candidates[i].State)
	return full, known
}

func (v View) side(i int) Account {
	a := Account{ID: v.Candidates[i].Account.ID, Name: v.Candidates[i].Account.Name}
	if full, known := v.full(i); known {
		full = math.Round(full*1e4) / 1e4 // 1 - 0.41 reads 0.59
		a.Utilization = &full
	}
	return a
}

// from is the record's account as it stands now.
func (r Record) from(v View) Account {
	if i := v.index(r.Account); i >= 0 {
		return v.side(i)
	}
	return Account{ID: r.Account, Name: r.Name}
}
