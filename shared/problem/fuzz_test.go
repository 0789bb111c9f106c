package problem

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"storefront.internal/shared/fault"
)

// FuzzBuild: whatever a detail, a pointer or a request id holds, the problem is JSON with the same values.
func FuzzBuild(f *testing.F) {
	f.Add("Not so.", "/signals/0", "req_1")
	f.Add("\"\\\x00\x1f\u2028</script>", "/a~1b", "\xff")
	b := New("https://errors.example/")
	f.Fuzz(func(t *testing.T, detail, pointer, requestID string) {
		_, body := b.Build(&fault.Error{Code: fault.InvalidRequest, Detail: detail,
			Fields: []fault.Field{{Code: "x", Detail: detail, Pointer: pointer}}}, requestID)
		var p struct {
			Detail    string        `json:"detail"`
			RequestID string        `json:"request_id"`
			Errors    []fault.Field `json:"errors"`
		}
		if !utf8.Valid(body) || json.Unmarshal(body, &p) != nil || len(p.Errors) != 1 {
			t.Fatalf("no problem: %q", body)
		}
		same := func(got, want string) bool {
			return got == strings.ToValidUTF8(want, "\ufffd") || !utf8.ValidString(want)
		}
		if detail != "" && !same(p.Detail, detail) || !same(p.RequestID, requestID) ||
			!same(p.Errors[0].Pointer, pointer) {
			t.Fatalf("%q, %q and %q became %s", detail, pointer, requestID, body)
		}
	})
}
