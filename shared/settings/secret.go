package settings

import "log/slog"

// masked is printed in place of a Secret.
const masked = "***"

// Secret is a text that is never printed: formatting, JSON and slog all show three asterisks. Only Reveal
// returns it, so a search for Reveal finds all uses.
type Secret string

// Reveal returns the text itself.
func (s Secret) Reveal() string { return string(s) }

// String implements fmt.Stringer.
func (s Secret) String() string { return masked }

// GoString implements fmt.GoStringer, which %#v uses.
func (s Secret) GoString() string { return masked }

// MarshalJSON implements json.Marshaler.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + masked + `"`), nil }

// MarshalText implements encoding.TextMarshaler, which also covers map keys.
func (s Secret) MarshalText() ([]byte, error) { return []byte(masked), nil }

// LogValue implements slog.LogValuer.
func (s Secret) LogValue() slog.Value { return slog.StringValue(masked) }
