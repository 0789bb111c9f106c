package payload

import "encoding/json"

// Buyer returns what is known of the buyer of an order as the object that an order document holds, nil when nothing is.
// It is personal data: it goes nowhere else.
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
	if err != nil { // strings always marshal
		return nil
	}
	return b
}
