package httpapi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"storefront.internal/shared/fault"
)

// maxDepth is the greatest number of nested containers in a body (contract, section 1 "Strict JSON").
const maxDepth = 32

// readBody returns the body's bytes. Nothing was sent: nil.
func readBody(r *http.Request) ([]byte, error) {
	raw, err := io.ReadAll(r.Body)
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return nil, fault.New(fault.PayloadTooLarge, "The body is larger than 1 MiB.")
	}
	if err != nil {
		return nil, fault.New(fault.InvalidRequest, "The body could not be read.")
	}
	return raw, nil
}

// form reads the members of a JSON object and gathers every fault, so that a client hears of all of them at once.
type form struct {
	faults []fault.Field
}

// err returns the gathered faults as an invalid_request, or nil.
func (f *form) err() error {
	if len(f.faults) == 0 {
		return nil
	}
	return &fault.Error{Code: fault.InvalidRequest, Detail: "The body does not have the form of this operation.", Fields: f.faults}
}

func (f *form) fault(pointer, code, detail string) {
	f.faults = append(f.faults, fault.Field{Code: code, Detail: detail, Pointer: pointer})
}

// object is a JSON object's members that are not null: a null member counts as absent. Unknown ones are ignored.
type object struct {
	form    *form
	pointer string
	members map[string]jsontext.Value
}

// parseObject reads a body that must be one strict JSON object.
func parseObject(raw []byte) (*object, error) {
	if err := checkStrict(raw); err != nil {
		return nil, err
	}
	if bytes.TrimLeft(raw, " \t\r\n")[0] != '{' {
		return nil, fault.Invalid("", "wrong_type", "The body is no JSON object.")
	}
	return newObject(&form{}, "", raw)
}

// checkStrict reports what makes a body no strict JSON: its grammar, UTF-8, a name twice, trailing bytes, depth.
func checkStrict(raw []byte) error {
	d := jsontext.NewDecoder(bytes.NewReader(raw))
	for first := true; ; first = false {
		if !first && d.StackDepth() == 0 {
			if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
				return malformed(d, "Something follows the JSON value.")
			}
			return nil
		}
		if _, err := d.ReadToken(); err != nil {
			return malformed(d, "The body is no strict JSON.")
		}
		if d.StackDepth() > maxDepth {
			return malformed(d, fmt.Sprintf("The body nests more than %d containers.", maxDepth))
		}
	}
}

func malformed(d *jsontext.Decoder, detail string) error {
	return fault.Invalid("", "malformed_json", detail+" At byte "+strconv.FormatInt(d.InputOffset(), 10)+".")
}

// newObject splits an object that checkStrict has passed.
func newObject(f *form, pointer string, raw []byte) (*object, error) {
	d := jsontext.NewDecoder(bytes.NewReader(raw))
	if _, err := d.ReadToken(); err != nil {
		return nil, fmt.Errorf("object: %w", err)
	}
	o := &object{form: f, pointer: pointer, members: make(map[string]jsontext.Value)}
	for d.PeekKind() != jsontext.KindEndObject {
		name, err := d.ReadToken()
		if err != nil {
			return nil, fmt.Errorf("member: %w", err)
		}
		key := name.String()
		value, err := d.ReadValue()
		if err != nil {
			return nil, fmt.Errorf("value: %w", err)
		}
		if value.Kind() != jsontext.KindNull {
			o.members[key] = value.Clone()
		}
	}
	return o, nil
}

// at is the JSON Pointer of a member. Names come from this package, so they need no escaping.
func (o *object) at(name string) string { return o.pointer + "/" + name }

// text returns a string member, or nil when it is absent or no string.
func (o *object) text(name string) *string {
	v, ok := o.members[name]
	if !ok {
		return nil
	}
	if v.Kind() != jsontext.KindString {
		o.form.fault(o.at(name), "wrong_type", "Must be a string.")
		return nil
	}
	s := unquote(v)
	return &s
}

// texts returns the strings of an array member, or nil when it is absent or no such array.
func (o *object) texts(name string, most int) []string {
	v, ok := o.members[name]
	if !ok {
		return nil
	}
	if v.Kind() != jsontext.KindBeginArray {
		o.form.fault(o.at(name), "wrong_type", "Must be an array of strings.")
		return nil
	}
	d := jsontext.NewDecoder(bytes.NewReader(v))
	_, _ = d.ReadToken() // the value passed checkStrict
	out := []string{}
	for i := 0; d.PeekKind() != jsontext.KindEndArray; i++ {
		if i == most {
			o.form.fault(o.at(name), "too_many", "Holds at most "+strconv.Itoa(most)+" elements.")
			return nil
		}
		element, err := d.ReadValue()
		if err != nil || element.Kind() != jsontext.KindString {
			o.form.fault(o.at(name)+"/"+strconv.Itoa(i), "wrong_type", "Must be a string.")
			return nil
		}
		out = append(out, unquote(element))
	}
	return out
}

// object returns an object member, or nil when it is absent or no object.
func (o *object) object(name string) *object {
	v, ok := o.members[name]
	if !ok {
		return nil
	}
	if v.Kind() != jsontext.KindBeginObject {
		o.form.fault(o.at(name), "wrong_type", "Must be an object.")
		return nil
	}
	member, err := newObject(o.form, o.at(name), v)
	if err != nil {
		o.form.fault(o.at(name), "wrong_type", "Must be an object.")
		return nil
	}
	return member
}

// unquote returns the text of a JSON string that passed checkStrict, which leaves nothing to go wrong.
func unquote(v jsontext.Value) string {
	text, _ := jsontext.AppendUnquote(nil, v)
	return string(text)
}
