package payload

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for text, want := range map[string]error{
		`{"a":[1,"x",null]}`: nil, ` 1 `: nil, `{"a":1,"a":2}`: nil, `"\ud800"`: nil, "\"\xff\"": nil,
		``: ErrJSON, `{"a":`: ErrJSON, `[1,]`: ErrJSON, `{} x`: ErrJSON, `{"a" 1}`: ErrJSON,
		deep(maxDepth): nil, deep(maxDepth + 1): ErrShape,
		"[" + strings.Repeat("0,", maxNodes-3) + "0]":       nil,
		"[" + strings.Repeat("0,", maxNodes-2) + "0]":       ErrTooLarge,
		"[" + strings.Repeat("[],", maxNodes/2) + "0]":      ErrTooLarge,
		"{" + strings.Repeat(`"":0,`, maxNodes/2) + `"":0}`: ErrTooLarge,
	} {
		if err := Check([]byte(text)); !errors.Is(err, want) {
			t.Errorf("%.40s of %d bytes: %v, want %v", text, len(text), err, want)
		}
	}
}

func TestElements(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`[]`: "", `null`: "", ` [ 1 , {"a" : [2]} ,"x,]" ] `: `1|{"a" : [2]}|"x,]"`,
		"[\n\t1,\r\n[ ]]": "1|[ ]",
		`[1,2,3]`:         "1|2|3",
	} {
		got, err := Elements([]byte(text), 3)
		parts := make([]string, 0, len(got))
		for _, raw := range got {
			parts = append(parts, string(raw))
		}
		if strings.Join(parts, "|") != want || err != nil {
			t.Errorf("%s: %q, %v", text, parts, err)
		}
	}
	for text, want := range map[string]error{
		`[1,2,3,4]`: ErrShape, `[1,2,3,`: ErrJSON, `[1,2] x`: ErrJSON, `[1 2]`: ErrJSON, `{}`: ErrShape,
		`{"a"`: ErrJSON, `"x"`: ErrShape, ``: ErrJSON, `[{"a":}]`: ErrJSON,
	} {
		if got, err := Elements([]byte(text), 3); !errors.Is(err, want) || got != nil {
			t.Errorf("%s: %d elements, %v, want %v", text, len(got), err, want)
		}
	}
	if _, err := Elements([]byte("["+strings.Repeat("0,", 1<<20)+"0]"), 3); err == nil ||
		err.Error() != "more elements than asked for" {
		t.Errorf("a page of a million: %v", err)
	}
}

// TestElementsAreCutOff appends to an element, which must not change the next one.
func TestElementsAreCutOff(t *testing.T) {
	t.Parallel()
	text := []byte(`[1,2]`)
	elements, err := Elements(text, 2)
	if err != nil {
		t.Fatal(err)
	}
	_ = append(elements[0], "xxxx"...)
	if string(text) != `[1,2]` {
		t.Errorf("%s", text)
	}
}

func TestBoundsOfLists(t *testing.T) {
	t.Parallel()
	var v struct {
		Outer struct {
			List  List[Count] `json:"list"`
			Texts Texts       `json:"texts"`
		} `json:"outer"`
	}
	list := func(n int) string { return "[" + strings.TrimRight(strings.Repeat("0,", n), ",") + "]" }
	texts := func(n int) string {
		members := make([]string, 0, n)
		for i := range n {
			members = append(members, fmt.Sprintf(`"l%d":"x"`, i))
		}
		return "{" + strings.Join(members, ",") + "}"
	}
	for text, want := range map[string]string{
		`{"outer":{"list":` + list(maxList) + `}}`:          "",
		`{"outer":{"list":null}}`:                           "",
		`{"outer":{"list":` + list(maxList+1) + `}}`:        "too_many at /outer/list",
		`{"outer":{"list":{}}}`:                             "wrong_type at /outer/list",
		`{"outer":{"texts":` + texts(maxLanguages) + `}}`:   "",
		`{"outer":{"texts":` + texts(maxLanguages+1) + `}}`: "too_many at /outer/texts",
	} {
		err := Decode([]byte(text), &v)
		if got := fmt.Sprint(err); got != want && (err != nil || want != "") {
			t.Errorf("%.60s of %d bytes: %s, want %q", text, len(text), got, want)
		}
	}
	var many []string
	for i := range 3 * maxTags {
		many = append(many, fmt.Sprint(i))
	}
	if tags := Tags(strings.Join(many, ",")); len(tags) != maxTags+1 {
		t.Errorf("%d tags", len(tags))
	}
}

// FuzzElements compares Elements with encoding/json.
func FuzzElements(f *testing.F) {
	for _, text := range []string{`[1, "a,b" ,{"x":[1]}]`, `[]`, `null`, `[1,]`, `{"a":1}`, `[[[]],-1e5]`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var want []json.RawMessage
		err := json.Unmarshal([]byte(text), &want)
		got, err2 := Elements([]byte(text), maxList)
		if errors.Is(err2, ErrTooLarge) || len(want) > maxList || strings.Count(text, "[") > maxDepth ||
			strings.Count(text, "{") > maxDepth {
			return
		}
		if (err == nil) != (err2 == nil) || len(got) != len(want) && err == nil {
			t.Fatalf("%q: %v and %v, %d and %d", text, err, err2, len(want), len(got))
		}
		for i := range got {
			if err == nil && string(got[i]) != string(want[i]) {
				t.Fatalf("%q: %q, want %q", text, got[i], want[i])
			}
		}
	})
}
