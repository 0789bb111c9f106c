package payload

import (
	"math/big"
	"strings"

	"storefront.internal/shared/catalog"
)

// Amount is a decimal amount, sent as a string or as a number. "" is absent, which does not mean free.
type Amount string

// UnmarshalJSON takes any value.
func (a *Amount) UnmarshalJSON(b []byte) error {
	var t Text
	if err := t.UnmarshalJSON(b); err != nil {
		return err
	}
	*a = Amount(strings.TrimSpace(string(t)))
	return nil
}

// Money returns the amount in a currency, nil when either is unknown. The catalog checks whether the text is
// a decimal.
func (a Amount) Money(currency string) *catalog.Money {
	if a == "" || currency == "" {
		return nil
	}
	return &catalog.Money{Amount: string(a), Currency: Currency(currency)}
}

// Exceeds reports whether both are decimals and a is greater.
func (a Amount) Exceeds(b Amount) bool {
	x, ok := a.decimal()
	y, ok2 := b.decimal()
	return ok && ok2 && x.Cmp(y) > 0
}

// Rounded returns the amount with at most ten fractional digits: a unit price that is a quotient has as many
// as a float.
func (a Amount) Rounded() Amount {
	const most = 10
	_, fraction, _ := strings.Cut(string(a), ".")
	x, ok := a.decimal()
	if !ok || len(fraction) <= most {
		return a
	}
	return Amount(strings.TrimRight(strings.TrimRight(x.FloatString(most), "0"), "."))
}

func (a Amount) decimal() (*big.Rat, bool) {
	const longest = 32 // without an exponent, which would make a huge number from a short text
	if len(a) > longest || a == "" || strings.Trim(string(a), "0123456789.") != "" {
		return nil, false
	}
	return new(big.Rat).SetString(string(a))
}

// Currency returns a code in the form of ISO 4217.
func Currency(code string) string { return strings.ToUpper(strings.TrimSpace(code)) }
