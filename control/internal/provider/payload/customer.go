package payload

import (
	"encoding/json"

	"storefront.internal/control/internal/provider"
)

// Customer is the customer of a privacy request; what is none is nobody.
type Customer struct {
	There bool
	provider.Customer
}

// UnmarshalJSON takes an object.
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
	c.There = true
	c.Customer = provider.Customer{Email: string(in.Email), Phone: string(in.Phone), Identification: string(in.Identification)}
	if in.ID.Some() {
		c.ID = string(in.ID)
	}
	return nil
}

// Known returns those of the ids that are some.
func Known(ids []ID) (known []string) {
	for _, id := range ids {
		if id.Some() {
			known = append(known, string(id))
		}
	}
	return known
}
