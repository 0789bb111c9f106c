package payload

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
)

var errID = errors.New("payload: an id is a string or an integer")

// ID is an identifier, sent as an integer or as a string. "" is absent.
type ID string

// UnmarshalJSON takes an integer, a string, or null.
func (id *ID) UnmarshalJSON(b []byte) error {
	switch c := b[0]; {
	case c == '"':
		var s string
		if err := json.Unmarshal(b, &s); err != nil {
			return errID
		}
		*id = ID(strings.TrimSpace(s))
	case c == 'n':
		*id = ""
	case digits(string(b)):
		*id = ID(b)
	default:
		return errID
	}
	return nil
}

// IsSet reports whether there is an id: providers write null, "" or 0 for none.
func (id ID) IsSet() bool { return id != "" && id != "0" }

// FindID returns the id of an entity that cannot be decoded, "" when it has none.
func FindID(entity []byte) string {
	var named struct {
		ID ID `json:"id"`
	}
	Peek(entity, &named)
	return string(named.ID)
}

// IsNumber reports whether a text is an unsigned number of at most 20 digits, as the ids of all platforms
// are.
func IsNumber(s string) bool { return len(s) <= 20 && digits(s) }

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// Text is a text that may come as a number. null, false and an empty array in place of an empty object are
// absent.
type Text string

// UnmarshalJSON takes any value.
func (t *Text) UnmarshalJSON(b []byte) error {
	*t = ""
	switch c := b[0]; {
	case c == '"':
		var s string
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
		*t = Text(s)
	case c == '-' || c >= '0' && c <= '9':
		*t = Text(b)
	}
	return nil
}

// Count is an integer, sent as a number or as a string. A fraction or another text is unknown.
type Count struct {
	Known bool
	N     int64
}

// UnmarshalJSON takes any value.
func (c *Count) UnmarshalJSON(b []byte) error {
	var t Text
	if err := t.UnmarshalJSON(b); err != nil {
		return err
	}
	whole, fraction, _ := strings.Cut(strings.TrimSpace(string(t)), ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	const most = 1<<53 - 1
	*c = Count{}
	if err == nil && strings.Trim(fraction, "0") == "" && n >= -most && n <= most {
		*c = Count{Known: true, N: n}
	}
	return nil
}

// Quantity returns the count as an availability has it: nil when unknown.
func (c Count) Quantity() *int64 {
	if !c.Known {
		return nil
	}
	n := c.N
	return &n
}

// Flag is a truth value: true, false, or a text that says so. Anything else is unknown.
type Flag struct{ Known, True bool }

// UnmarshalJSON takes any value.
func (f *Flag) UnmarshalJSON(b []byte) error {
	switch strings.ToLower(strings.Trim(string(b), `"`)) {
	case "true", "1", "yes":
		*f = Flag{Known: true, True: true}
	case "false", "0", "no":
		*f = Flag{Known: true}
	default:
		*f = Flag{}
	}
	return nil
}

// Pointer returns the flag as an item has it: nil when unknown.
func (f Flag) Pointer() *bool {
	if !f.Known {
		return nil
	}
	v := f.True
	return &v
}

// Tags splits tags that are joined by commas, without duplicates. It stops behind the first tag that the
// catalog does not take.
func Tags(joined string) []string {
	tags := []string{}
	seen := make(map[string]bool)
	for tag := range strings.SplitSeq(joined, ",") {
		if tag = strings.TrimSpace(tag); tag != "" && !seen[tag] {
			seen[tag] = true
			tags = append(tags, tag)
			if len(tags) > maxTags {
				break // the catalog takes none of them
			}
		}
	}
	return tags
}
