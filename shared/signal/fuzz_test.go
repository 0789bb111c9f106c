package signal

import (
	"reflect"
	"testing"
)

// FuzzRecord: a record that is read and written again is read as the same, and garbage is an error and no
// panic.
func FuzzRecord(f *testing.F) {
	f.Add(AppendRecord(nil, exampleRecord()))
	f.Add([]byte(`{"schema":1,"record_id":"","connection_id":"","store_id":"",` +
		`"received_at":"2026-11-21T10:00:00Z","audit":{},"signals":[]}`))
	f.Add([]byte(`{"schema":2}`))
	f.Add([]byte(`{"schema":1,"received_at":"0000-01-01T00:00:00Z","signals":[{"index":-1}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		first, err := DecodeRecord(b)
		if err != nil {
			return
		}
		written := AppendRecord(nil, first)
		second, err := DecodeRecord(written)
		if err != nil {
			t.Fatalf("%q was read and written as %q, which is not read: %v", b, written, err)
		}
		if again := AppendRecord(nil, second); string(again) != string(written) {
			t.Fatalf("%q is written again as %q", written, again)
		}
		if len(first.Signals) != len(second.Signals) || !reflect.DeepEqual(first.Audit, second.Audit) {
			t.Fatalf("%+v became %+v", first, second)
		}
	})
}
