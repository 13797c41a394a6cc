package provider

import (
	"encoding/json"

	"holdfast/internal/wire/body"
)

// storedItems bounds the items of one stored response whose owner is recorded, each by a
// write. A client that names one without its content names the others so, too, and those that
// it named before; the first ones tell.
const storedItems = 8

// StoredItem is the item at place n of a stored response's output, which a later request may
// name by its id alone; none where it has no id, or where enough come before it.
func StoredItem(n int, id string) []Object {
	if id == "" || n >= storedItems {
		return nil
	}
	return []Object{{ID: id, Keep: Stored}}
}

// StreamedItem is the item that the data of a response.output_item event of a Responses
// stream reports. A response that is not stored has none that can be named.
func StreamedItem(f body.Facts, data []byte) []Object {
	if f.Unstored {
		return nil
	}
	var event struct {
		Place int `json:"output_index"`
		Item  struct {
			ID json.RawMessage `json:"id"`
		} `json:"item"`
	}
	var id string
	_ = json.Unmarshal(data, &event) // what cannot be read names no object
	_ = json.Unmarshal(event.Item.ID, &id)
	return StoredItem(event.Place, id)
}
