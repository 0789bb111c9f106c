package httpapi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"storefront.internal/shared/fault"
)

// maxDepth is the greatest number of nested containers in a body.
const maxDepth = 32

// readBody returns the bytes of the body, nil for an empty one.
func readBody(r *http.Request) ([]byte, error) {
	raw, err := io.ReadAll(r.Body)
	var limit *http.MaxBytesError
	if errors.As(err, &limit) {
		return nil, fault.New(fault.PayloadTooLarge, "The body is larger than 1 MiB.")
	}
	if err != nil {
		return nil, fault.New(fault.InvalidRequest, "The body could not be read.")
	}
	return raw, nil
}

// form collects every error of a JSON object, so that a client learns all of them at once.
type form struct {
	errs []fault.Field
}

// err returns the collected errors as an invalid_request, or nil.
func (f *form) err() error {
	if len(f.errs) == 0 {
		return nil
	}
	const detail = "The body does not have the form of this operation."
	return &fault.Error{Code: fault.InvalidRequest, Detail: detail, Fields: f.errs}
}

func (f *form) addError(pointer, code, detail string) {
	f.errs = append(f.errs, fault.Field{Code: code, Detail: detail, Pointer: pointer})
}

// object holds the members of a JSON object that are not null: a null member counts as absent. Unknown ones
// are ignored.
type object struct {
	form    *form
	pointer string
	members map[string]jsontext.Value
}

// readObject reads a body that must be one strict JSON object.
func readObject(r *http.Request) (*object, error) {
	raw, err := readBody(r)
	if err != nil {
		return nil, err
	}
	return parseObject(raw)
}

func parseObject(raw []byte) (*object, error) {
	if err := checkStrict(raw); err != nil {
		return nil, err
	}
	if jsontext.Value(raw).Kind() != jsontext.KindBeginObject {
		return nil, fault.Invalid("", "wrong_type", "The body is no JSON object.")
	}
	return newObject(&form{}, "", raw)
}

// checkStrict reports what a strict JSON value may not have: wrong grammar, invalid UTF-8, a member name
// twice, trailing bytes, too much depth.
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

// newObject splits an object that checkStrict accepted.
func newObject(f *form, pointer string, raw []byte) (*object, error) {
	o := &object{form: f, pointer: pointer}
	if err := json.Unmarshal(raw, &o.members); err != nil {
		return nil, fmt.Errorf("object: %w", err)
	}
	for name, value := range o.members {
		if value.Kind() == jsontext.KindNull {
			delete(o.members, name)
		}
	}
	return o, nil
}

// at is the JSON Pointer of a member. Names come from this package, so they need no escaping.
func (o *object) at(name string) string { return o.pointer + "/" + name }

// member returns a member of the wanted kind; ok is false when it is absent or of another kind, which is an
// error.
func (o *object) member(name string, kind jsontext.Kind, detail string) (v jsontext.Value, ok bool) {
	if v, ok = o.members[name]; ok && v.Kind() != kind {
		o.form.addError(o.at(name), "wrong_type", detail)
		return nil, false
	}
	return v, ok
}

// require adds an error when a member is absent.
func (o *object) require(name string) {
	if _, present := o.members[name]; !present {
		o.form.addError(o.at(name), "missing", "Is required.")
	}
}

// stringMember returns a string member, nil without one.
func (o *object) stringMember(name string) *string {
	v, ok := o.member(name, jsontext.KindString, "Must be a string.")
	if !ok {
		return nil
	}
	s := unquote(v)
	return &s
}

// boundedString returns a string member of least to most characters without control characters; PostgreSQL
// cannot store all of those.
func (o *object) boundedString(name string, least, most int) *string {
	s := o.stringMember(name)
	if s == nil {
		return nil
	}
	if n := utf8.RuneCountInString(*s); n < least || n > most {
		o.form.addError(o.at(name), "invalid_length",
			"Has "+strconv.Itoa(least)+" to "+strconv.Itoa(most)+" characters.")
		return nil
	}
	if strings.ContainsFunc(*s, unicode.IsControl) {
		o.form.addError(o.at(name), "invalid_character", "Holds a control character.")
		return nil
	}
	return s
}

// requiredString returns a member of at least one character, "" when there is none.
func (o *object) requiredString(name string, most int) string {
	o.require(name)
	if s := o.boundedString(name, 1, most); s != nil {
		return *s
	}
	return ""
}

// stringArray returns the strings of an array member, nil without one.
func (o *object) stringArray(name string, limit int) []string {
	v, ok := o.member(name, jsontext.KindBeginArray, "Must be an array of strings.")
	if !ok {
		return nil
	}
	var elements []jsontext.Value
	_ = json.Unmarshal(v, &elements) // checkStrict accepted it
	out := make([]string, 0, len(elements))
	for i, element := range elements {
		if i == limit {
			o.form.addError(o.at(name), "too_many", "Holds at most "+strconv.Itoa(limit)+" elements.")
			return nil
		}
		if element.Kind() != jsontext.KindString {
			o.form.addError(o.at(name)+"/"+strconv.Itoa(i), "wrong_type", "Must be a string.")
			return nil
		}
		out = append(out, unquote(element))
	}
	return out
}

// object returns an object member, nil without one.
func (o *object) object(name string) *object {
	v, ok := o.member(name, jsontext.KindBeginObject, "Must be an object.")
	if !ok {
		return nil
	}
	member, err := newObject(o.form, o.at(name), v)
	if err != nil {
		o.form.addError(o.at(name), "wrong_type", "Must be an object.")
		return nil
	}
	return member
}

// unquote returns the text of a JSON string that checkStrict accepted.
func unquote(v jsontext.Value) string {
	text, _ := jsontext.AppendUnquote(nil, v)
	return string(text)
}
