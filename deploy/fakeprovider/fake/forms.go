package fake

import (
	"encoding/json"
	"errors"

	"storefront.internal/deploy/fakeprovider/hooks"
)

// text is an id that a person may write as a string or as a number.
type text string

// UnmarshalJSON takes both.
func (t *text) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, (*string)(t))
	}
	var n json.Number
	err := json.Unmarshal(b, &n)
	*t = text(n)
	return err
}

// forge is what is wrong with a delivery: false, true (the signature) or one of the words of package hooks.
type forge string

// UnmarshalJSON takes all three.
func (f *forge) UnmarshalJSON(b []byte) error {
	switch string(b) {
	case "false", "null", `""`:
		*f = ""
	case "true", `"` + hooks.ForgeSignature + `"`:
		*f = hooks.ForgeSignature
	case `"` + hooks.ForgeBody + `"`:
		*f = hooks.ForgeBody
	case `"` + hooks.ForgeMissing + `"`:
		*f = hooks.ForgeMissing
	default:
		return errors.New(`forge is true, "signature", "body" or "missing"`)
	}
	return nil
}
