package history

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"
)

func TestRoundTrip(t *testing.T) {
	var file bytes.Buffer
	r := NewRecorder(&file)
	two := 2
	begin := Event{Op: Signals, Client: 3, Edge: "edge-1", Connection: "con_a",
		Signals: []SentSignal{{ID: "sig_1", Type: "add_to_cart", Quantity: &two},
			{ID: "sig_2", Malformed: true}}}
	call := r.Invoke(begin)
	r.RecordFault(Fault{At: 1, Until: 2, Kind: "N1", Detail: "kill edge-2"})
	end := Event{Op: Signals, Kind: OK, Status: 202,
		Results: []SignalResult{{Index: 0, ID: "sig_1", Status: "accepted"},
			{Index: 1, ID: "sig_2", Status: "rejected", Reason: "invalid_type"}}}
	r.Complete(call, end)
	r.Invoke(Event{Op: Observe, Observations: []SentObservation{{Entity: "product", External: "p",
		Revision: 7, Raw: "00"}}})
	if err := r.Flush(); err != nil {
		t.Fatal(err)
	}
	h, err := Read(&file)
	if err != nil {
		t.Fatal(err)
	}
	events := h.Events
	want := Fault{At: 1, Until: 2, Kind: "N1", Detail: "kill edge-2"}
	if len(events) != 3 || len(h.Faults) != 1 || h.Faults[0] != want {
		t.Fatalf("%+v", h)
	}
	if events[0].Kind != Invoke || !reflect.DeepEqual(events[0].Signals, begin.Signals) {
		t.Errorf("begin %+v", events[0])
	}
	if events[1].Call != events[0].Call || events[1].At < events[0].At ||
		!reflect.DeepEqual(events[1].Results, end.Results) {
		t.Errorf("end %+v", events[1])
	}
}

func TestManyClients(t *testing.T) {
	var file bytes.Buffer
	r := NewRecorder(&file)
	var clients sync.WaitGroup
	for i := range 16 {
		clients.Go(func() {
			for range 100 {
				r.Complete(r.Invoke(Event{Op: Item, Client: i}), Event{Op: Item, Kind: Info})
			}
		})
	}
	clients.Wait()
	if err := r.Flush(); err != nil {
		t.Fatal(err)
	}
	h, err := Read(&file)
	events := h.Events
	if err != nil || len(events) != 3200 {
		t.Fatalf("%d events, %v", len(events), err)
	}
}

func TestInvalidHistories(t *testing.T) {
	for name, text := range map[string]string{
		"end without begin": `{"at":1,"call":1,"kind":"ok","op":"item"}`,
		"two ends": `{"at":1,"call":1,"kind":"invoke","op":"item"}` + "\n" +
			`{"at":2,"call":1,"kind":"ok","op":"item"}` + "\n" + `{"at":3,"call":1,"kind":"ok","op":"item"}`,
		"other operation": `{"at":1,"call":1,"kind":"invoke","op":"item"}` + "\n" +
			`{"at":2,"call":1,"kind":"ok","op":"signals"}`,
		"clock goes back": `{"at":2,"call":1,"kind":"invoke","op":"item"}` + "\n" +
			`{"at":1,"call":1,"kind":"ok","op":"item"}`,
		"unknown kind": `{"at":2,"call":1,"kind":"maybe","op":"item"}`,
		"cut line":     `{"at":2,"call":1,"ki`,
	} {
		if _, err := Read(strings.NewReader(text)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

// TestIncompleteHistory checks that write errors and ends without an outcome are errors.
func TestIncompleteHistory(t *testing.T) {
	r := NewRecorder(full{})
	r.Invoke(Event{Op: Item})
	if r.Flush() == nil {
		t.Error("a lost line is not an error")
	}
	r = NewRecorder(&bytes.Buffer{})
	r.Complete(r.Invoke(Event{Op: Item}), Event{Op: Item})
	if r.Flush() == nil {
		t.Error("an end without an outcome is not an error")
	}
}

func TestCanary(t *testing.T) {
	a := Canary("con_a", "sig_1")
	if len(a) != 24 || a == Canary("con_b", "sig_1") || a == Canary("con_a", "sig_2") ||
		a != Canary("con_a", "sig_1") {
		t.Error(a)
	}
}
