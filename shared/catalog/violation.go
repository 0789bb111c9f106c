package catalog

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// RejectionReason says why an element is rejected and not archived. It is empty when the element is archived.
type RejectionReason string

// The reasons, in the order in which they are checked.
const (
	InvalidObservation RejectionReason = "invalid_observation" // the element is not an object
	MissingExternalID  RejectionReason = "missing_external_id"
	// not a string of 1 to 512 characters without NUL
	MalformedExternalID RejectionReason = "invalid_external_id"
	MissingEntity       RejectionReason = "missing_entity"
	MalformedEntity     RejectionReason = "invalid_entity"
	MissingRevision     RejectionReason = "missing_revision"
	MalformedRevision   RejectionReason = "invalid_revision" // not an integer of 1 to 2^53-1
)

// Rule names the rule that a quarantined element violates. Rules are never renamed, since metrics are
// labelled with them.
type Rule string

// The closed set of rules.
const (
	InvalidJSON   Rule = "invalid_json" // of bytes that Split did not check
	TooDeep       Rule = "too_deep"     // more than 32 nested containers, the document or raw itself counted
	DuplicateName Rule = "duplicate_name"
	NULCharacter  Rule = "nul_character"
	LoneSurrogate Rule = "lone_surrogate"
	HugeExponent  Rule = "huge_exponent" // beyond ±400

	InvalidOperation   Rule = "invalid_operation"
	MissingDocument    Rule = "missing_document"    // of an upsert
	UnexpectedDocument Rule = "unexpected_document" // of a delete

	Missing             Rule = "missing"    // a required member
	WrongType           Rule = "wrong_type" // not the required object, array, string or boolean
	TooLarge            Rule = "too_large"  // a document over 4 MiB or 262,144 values, a buyer over 64 KiB
	TooLong             Rule = "too_long"   // a text over 1 MiB, any other string over 1 KiB
	TooMany             Rule = "too_many"
	TooFew              Rule = "too_few" // no variant, a localized text without a language
	InvalidStatus       Rule = "invalid_status"
	InvalidLanguage     Rule = "invalid_language"
	InvalidAmount       Rule = "invalid_amount"
	InvalidCurrency     Rule = "invalid_currency"
	InvalidURL          Rule = "invalid_url"
	InvalidTime         Rule = "invalid_time"
	InvalidQuantity     Rule = "invalid_quantity"
	InvalidNumber       Rule = "invalid_number" // the number of an order is neither a string nor an integer
	InvalidExternalID   Rule = "invalid_external_id"
	DuplicateExternalID Rule = "duplicate_external_id" // two variants with the same external id
	UnknownVariant      Rule = "unknown_variant"       // an availability whose variant is not in the document
)

// Violation is the first rule that an element or a document violates, and where.
type Violation struct {
	Rule Rule
	// Pointer is a JSON Pointer (RFC 6901) from the element, or from the document where only a document was
	// read. It ends before a name that is not printable, and in orders before a name that is not one of ours.
	Pointer string
}

// String returns the reason of status quarantined: "invalid_amount at /document/variants/0/price/amount".
func (f *Violation) String() string {
	if f.Pointer == "" {
		return string(f.Rule)
	}
	return string(f.Rule) + " at " + f.Pointer
}

// under prepends the pointer of the part that was read.
func (f *Violation) under(pointer string) *Violation {
	f.Pointer = pointer + f.Pointer
	return f
}

// printable returns the pointer up to its first token that is not printable.
func printable(p jsontext.Pointer) string {
	var out string
	for name := range p.Tokens() {
		token, ok := pointerToken([]byte(name))
		if !ok {
			break
		}
		out += token
	}
	return out
}

// pointerToken returns "/" and the escaped name when it is short and printable.
func pointerToken(name []byte) (string, bool) {
	const longest = 64
	if len(name) > longest || !utf8.Valid(name) ||
		bytes.ContainsFunc(name, func(c rune) bool { return !unicode.IsPrint(c) }) {
		return "", false
	}
	return "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(string(name)), true
}

// withoutBuyerData cuts the pointer of a violation of an order: names of unknown members may be buyer data.
func (f *Violation) withoutBuyerData() *Violation {
	known := []string{"document", "raw", "operation", "source_updated_at", "external_id", "entity",
		"revision",
		"number", "status", "payment_status", "currency", "total", "amount", "lines", "item_external_id",
		"variant_external_id", "quantity", "unit_price", "placed_at", "buyer"}
	tokens := strings.Split(f.Pointer, "/")
	for i, token := range tokens[1:] {
		index := tokens[i] == "lines" && isDigits(token)
		if !index && !slices.Contains(known, token) || tokens[i] == "buyer" || tokens[i] == "raw" {
			f.Pointer = strings.Join(tokens[:i+1], "/")
			break
		}
	}
	return f
}
