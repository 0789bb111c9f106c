package catalog

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Rejection says why an element cannot be archived: the reason of status rejected. It is empty when it can.
type Rejection string

// The closed set of rejections, in the order in which they are tried.
const (
	InvalidObservation  Rejection = "invalid_observation" // the element is no object
	MissingExternalID   Rejection = "missing_external_id"
	MalformedExternalID Rejection = "invalid_external_id" // no string of 1 to 512 characters without NUL
	MissingEntity       Rejection = "missing_entity"
	MalformedEntity     Rejection = "invalid_entity"
	MissingRevision     Rejection = "missing_revision"
	MalformedRevision   Rejection = "invalid_revision" // no integer of 1 to 2^53-1
)

// Rejections returns the closed set.
func Rejections() []Rejection {
	return []Rejection{InvalidObservation, MissingExternalID, MalformedExternalID, MissingEntity, MalformedEntity,
		MissingRevision, MalformedRevision}
}

// Rule names what an archived element breaks. Rules are never renamed; they may label metrics.
type Rule string

// The closed set of rules.
const (
	InvalidJSON   Rule = "invalid_json" // of bytes that did not come through Split
	TooDeep       Rule = "too_deep"     // more than 32 nested containers, the document or raw itself counted
	DuplicateName Rule = "duplicate_name"
	NULCharacter  Rule = "nul_character"
	LoneSurrogate Rule = "lone_surrogate"
	HugeExponent  Rule = "huge_exponent" // beyond ±400

	InvalidOperation   Rule = "invalid_operation"
	MissingDocument    Rule = "missing_document"    // of an upsert
	UnexpectedDocument Rule = "unexpected_document" // of a delete

	Missing             Rule = "missing"    // a required member
	WrongType           Rule = "wrong_type" // no object, array, string, boolean where one is called for
	TooLarge            Rule = "too_large"  // a document over 4 MiB, a buyer over 64 KiB
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
	InvalidNumber       Rule = "invalid_number" // an order's number that is no string and no integer
	InvalidExternalID   Rule = "invalid_external_id"
	DuplicateExternalID Rule = "duplicate_external_id" // a variant named twice
	UnknownVariant      Rule = "unknown_variant"       // an availability of no variant of the document
)

// Rules returns the closed set.
func Rules() []Rule {
	return []Rule{InvalidJSON, TooDeep, DuplicateName, NULCharacter, LoneSurrogate, HugeExponent,
		InvalidOperation, MissingDocument, UnexpectedDocument,
		Missing, WrongType, TooLarge, TooLong, TooMany, TooFew, InvalidStatus, InvalidLanguage, InvalidAmount,
		InvalidCurrency, InvalidURL, InvalidTime, InvalidQuantity, InvalidNumber, InvalidExternalID,
		DuplicateExternalID, UnknownVariant}
}

// Flaw is the first rule that an element or a document breaks, and where.
type Flaw struct {
	Rule Rule
	// Pointer is a JSON Pointer (RFC 6901) from the element, or from the document where a document alone was read. It
	// stops above a name that is not fit to print, and of an order above every name that the contract does not know.
	Pointer string
}

// String is the reason of status quarantined: "invalid_amount at /document/variants/0/price/amount".
func (f *Flaw) String() string {
	if f.Pointer == "" {
		return string(f.Rule)
	}
	return string(f.Rule) + " at " + f.Pointer
}

// under prepends a token to the pointer while the reading unwinds.
func (f *Flaw) under(name []byte) *Flaw {
	if token, ok := pointerToken(name); ok {
		f.Pointer = token + f.Pointer
	} else {
		f.Pointer = ""
	}
	return f
}

// pointerToken returns "/" and the escaped name when it is short and printable.
func pointerToken(name []byte) (string, bool) {
	const longest = 64
	if len(name) > longest || !utf8.Valid(name) || bytes.ContainsFunc(name, func(c rune) bool { return !unicode.IsPrint(c) }) {
		return "", false
	}
	return "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(string(name)), true
}

// withoutBuyerData cuts the pointer of an order's flaw: names of members that are not ours may be buyer data.
func (f *Flaw) withoutBuyerData() *Flaw {
	known := []string{"document", "raw", "operation", "source_updated_at", "external_id", "entity", "revision",
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
