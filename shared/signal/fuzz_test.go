package signal

import (
	"reflect"
	"testing"
)

// FuzzRecord: a record that is read and written again is read as the same, and garbage is an error and no
// panic.
func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"schema":1,"record_id":"r","connection_id":"c","received_at":"2026-11-21T10:00:00Z","audit":` +
		`{"crawler":true},"signals":[{"index":0,"occurred_at":"2026-11-21T10:00:00Z","client":{"a":[{"}\"":"{"}]}}]}`))
	f.Add(AppendRecord(nil, exampleRecord()))
	f.Add([]byte(`{"schema":1,"record_id":"","connection_id":"","store_id":"",` +
		`"received_at":"2026-11-21T10:00:00Z","audit":{},"signals":[]}`))
	f.Add([]byte(`{"schema":3}`))
	f.Add(AppendCompact(nil, compactRecord()))
	f.Add([]byte(`{"schema":2,"received_at":"2026-11-21T10:00:00Z","signals":[{"index":0,"like":0}]}`))
	f.Add([]byte(`{"schema":1,"received_at":"0000-01-01T00:00:00Z","signals":[{"index":-1}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if read, ok := newReader(b).readRecord(); ok {
			want, err := unmarshalRecord(b)
			if err != nil || !reflect.DeepEqual(inUTC(read), inUTC(*want)) {
				t.Fatalf("%q is read as\n%+v, and unmarshaled as\n%+v, %v", b, read, want, err)
			}
		}
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
		third, err := DecodeRecord(AppendCompact(nil, first))
		if err != nil || string(AppendRecord(nil, third)) != string(written) {
			t.Fatalf("%q, written compactly, is read as %+v, %v", b, third, err)
		}
		if len(first.Signals) != len(second.Signals) || !reflect.DeepEqual(first.Audit, second.Audit) {
			t.Fatalf("%+v became %+v", first, second)
		}
	})
}

// inUTC returns the record with its times in UTC, as DecodeRecord does.
func inUTC(r Record) Record {
	r.ReceivedAt = r.ReceivedAt.UTC()
	for i := range r.Signals {
		r.Signals[i].OccurredAt = r.Signals[i].OccurredAt.UTC()
	}
	return r
}

// FuzzDecision: what the fast reader accepts is what encoding/json reads.
func FuzzDecision(f *testing.F) {
	f.Add(AppendDecision(nil, exampleDecision()))
	f.Add([]byte(`{"schema":1,"served_at":"2026-11-21T10:00:00Z","items":[]}`))
	f.Add([]byte(`{"schema":1,"served_at":"2026-11-21T10:00:00Z","items":[{"position":01}],"engine_ids":{]}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		read, ok := newReader(b).readDecision()
		if !ok {
			return
		}
		want, err := unmarshalDecision(b)
		if err == nil {
			want.ServedAt = want.ServedAt.UTC()
		}
		if err != nil || !reflect.DeepEqual(&read, want) {
			t.Fatalf("%q is read as\n%+v, and unmarshaled as\n%+v, %v", b, read, want, err)
		}
	})
}
