package payload

import (
	"math/big"
	"strings"

	"storefront.internal/shared/catalog"
)

// Amount is a decimal amount, as a string or as a number. "" is absent: a price that a provider leaves open is not free.
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

// Money returns the amount in a currency, nil when either is unknown. The text of the amount stays as it came; whether it
// is a decimal is the catalog's judgement.
func (a Amount) Money(currency string) *catalog.Money {
	if a == "" || currency == "" {
		return nil
	}
	return &catalog.Money{Amount: string(a), Currency: Currency(currency)}
}

// Exceeds reports whether both are decimals and a is the greater.
func (a Amount) Exceeds(b Amount) bool {
	x, ok := a.decimal()
	y, ok2 := b.decimal()
	return ok && ok2 && x.Cmp(y) > 0
}

// Rounded returns the amount with at most ten digits behind the point: a unit price that is a quotient comes with as many
// as a float has.
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
	const longest = 32 // and no exponent: a short text must not make a huge number
	if len(a) > longest || a == "" || strings.Trim(string(a), "0123456789.") != "" {
		return nil, false
	}
	return new(big.Rat).SetString(string(a))
}

// Currency returns a code in the form of ISO 4217.
func Currency(code string) string { return strings.ToUpper(strings.TrimSpace(code)) }
