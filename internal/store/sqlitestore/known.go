package sqlitestore

import "holdfast/internal/store"

// knownBytes bounds what known keeps, roughly.
const knownBytes = 1 << 20

// known is what the connection has read or written since the file was last changed by
// others. It answers for the file as long as the file's version is the one it was told.
type known struct {
	version int64
	records map[store.Key]fact
	bytes   int
}

// fact is a record, or the knowledge that no record exists.
type fact struct {
	record store.Record
	there  bool
}

func newKnown() known { return known{records: map[store.Key]fact{}} }

// at says which version the file has now; if that is a new one, nothing is known of it.
func (k *known) at(version int64) {
	if version != k.version {
		k.version = version
		k.forget()
	}
}

func (k *known) forget() {
	if len(k.records) > 0 {
		k.records, k.bytes = map[store.Key]fact{}, 0
	}
}

func (k *known) get(key store.Key) (r store.Record, there, noted bool) {
	f, noted := k.records[key]
	return f.record, f.there, noted
}

func (k *known) note(r store.Record)  { k.set(r.Key, fact{r, true}) }
func (k *known) absent(key store.Key) { k.set(key, fact{}) }
func (k *known) set(key store.Key, f fact) {
	const overhead = 200 // of a map's entry and its strings
	old, replaced := k.records[key]
	if replaced {
		k.bytes -= overhead + len(old.record.Body)
	} else if k.bytes > knownBytes {
		k.forget() // what is still in use comes back by being read
	}
	k.bytes += overhead + len(f.record.Body)
	k.records[key] = f
}
