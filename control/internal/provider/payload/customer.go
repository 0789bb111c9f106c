package payload

import (
	"encoding/json"

	"storefront.internal/control/internal/provider"
)

// Customer is the customer of a privacy request. Present is false when there is none.
type Customer struct {
	Present bool
	provider.Customer
}

// UnmarshalJSON takes an object; any other value is absent.
func (c *Customer) UnmarshalJSON(text []byte) error {
	*c = Customer{}
	if len(text) == 0 || text[0] != '{' {
		return nil
	}
	var in struct {
		ID             ID   `json:"id"`
		Email          Text `json:"email"`
		Phone          Text `json:"phone"`
		Identification Text `json:"identification"`
	}
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	c.Present = true
	c.Customer = provider.Customer{Email: string(in.Email), Phone: string(in.Phone),
		Identification: string(in.Identification)}
	if in.ID.IsSet() {
		c.ID = string(in.ID)
	}
	return nil
}

// SetIDs returns those ids that are set.
func SetIDs(ids []ID) (known []string) {
	for _, id := range ids {
		if id.IsSet() {
			known = append(known, string(id))
		}
	}
	return known
}
