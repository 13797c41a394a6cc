package metric

// Request is what is measured of one request to a provider. All else that is worth knowing
// of it stands in its line of the log.
type Request struct {
	// Table is the name of the table that the gateway is on.
	Table string
	// StoreUnavailable: the request was refused because the store did not answer.
	StoreUnavailable bool
}

// OfRequest makes the data of one request; none where it has nothing to say.
func OfRequest(r Request) []Datum {
	if !r.StoreUnavailable {
		return nil
	}
	return []Datum{datum(StoreUnavailable, 1, Dimension{Table, r.Table})}
}
