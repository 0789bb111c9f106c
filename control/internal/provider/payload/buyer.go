package payload

import "encoding/json"

// Buyer returns the known members of an order's buyer as JSON, nil when none is known. It is personal data
// and goes into the order's document only.
func Buyer(known map[string]string) json.RawMessage {
	for name, text := range known {
		if text == "" {
			delete(known, name)
		}
	}
	if len(known) == 0 {
		return nil
	}
	b, err := json.Marshal(known)
	if err != nil { // cannot happen: strings always marshal
		return nil
	}
	return b
}
