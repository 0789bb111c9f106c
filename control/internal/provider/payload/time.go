package payload

import (
	"encoding/json"
	"strings"
	"time"
)

// Time is an instant in any form that providers use: RFC 3339, an offset without a colon, no zone (UTC), a
// space in place of the T, or an object of a date and its zone. Zero is absent.
type Time struct {
	time.Time
	text string // the original text, when it has none of these forms
}

// UnmarshalJSON takes any value.
func (t *Time) UnmarshalJSON(b []byte) error {
	*t = Time{}
	if b[0] == '{' {
		var dated struct{ Date, Timezone Text }
		if err := json.Unmarshal(b, &dated); err != nil {
			return err
		}
		zone, err := time.LoadLocation(string(dated.Timezone))
		if err != nil || zone == time.Local {
			zone = time.UTC // not the zone of this machine
			if at, err := time.Parse("-07:00", string(dated.Timezone)); err == nil {
				zone = at.Location()
			}
		}
		t.read(string(dated.Date), zone)
		return nil
	}
	var text Text
	if err := text.UnmarshalJSON(b); err != nil {
		return err
	}
	t.read(string(text), time.UTC)
	return nil
}

func (t *Time) read(text string, zone *time.Location) {
	text = strings.TrimSpace(text)
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05",
		"2006-01-02 15:04:05Z07:00",
		"2006-01-02 15:04:05Z0700", "2006-01-02 15:04:05"} {
		at, err := time.ParseInLocation(layout, text, zone)
		if err != nil {
			continue
		}
		if at = at.UTC().Truncate(time.Microsecond); at.Year() >= 1000 && at.Year() <= 9999 {
			t.Time = at
		}
		return
	}
	t.text = text
}

// Version returns the instant as a source_version, in one form for all input forms. A text that is not an
// instant is returned unchanged.
func (t Time) Version() string {
	if t.IsZero() {
		return t.text
	}
	return t.UTC().Format("2006-01-02T15:04:05.999999Z")
}
