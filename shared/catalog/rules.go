package catalog

import (
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"storefront.internal/shared/rfc3339"
)

// validExternalID reports whether s is 1 to MaxExternalID characters. Any characters are allowed, since the
// shop chose the id.
func validExternalID(s string) bool {
	return s != "" && utf8.RuneCountInString(s) <= MaxExternalID
}

// validAmount reports whether s is a decimal: 1 to 18 digits, then at most a point and 1 to 10 digits. No
// sign, no exponent, no grouping.
func validAmount(s string) bool {
	whole, fraction, point := strings.Cut(s, ".")
	if len(whole) > 18 || !isDigits(whole) {
		return false
	}
	return !point || len(fraction) <= 10 && isDigits(fraction)
}

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// ValidLanguage reports whether s has the form of a BCP 47 tag: subtags of 1 to 8 letters and digits joined
// by hyphens, the first of letters alone and, unless it is x or i, of two at least; 35 bytes at most.
func ValidLanguage(s string) bool {
	const longest = 35
	if len(s) > longest {
		return false
	}
	first, rest, more := strings.Cut(s, "-")
	switch {
	case strings.ContainsAny(first, "0123456789"), !isSubtag(first):
		return false
	case len(first) == 1:
		return more && strings.ContainsAny(first, "xXiI") && areSubtags(rest)
	default:
		return !more || areSubtags(rest)
	}
}

func areSubtags(s string) bool {
	for tag := range strings.SplitSeq(s, "-") {
		if !isSubtag(tag) {
			return false
		}
	}
	return true
}

func isSubtag(s string) bool {
	for i := range len(s) {
		c := s[i] | 0x20
		if (c < 'a' || c > 'z') && (s[i] < '0' || s[i] > '9') {
			return false
		}
	}
	return s != "" && len(s) <= 8
}

// validURL reports whether s is an absolute http(s) URL with a host and without credentials, spaces and
// controls.
func validURL(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] == 0x7f {
			return false
		}
	}
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.User == nil
}

// parseTime reads a time. One with a year below 1000 is the zero value of a clock and invalid.
func parseTime(s string) (time.Time, bool) {
	const longest = 64
	t, ok := rfc3339.Parse(s)
	return t, ok && len(s) <= longest && t.Year() >= 1000 && t.Year() <= 9999
}

// parseInteger reads a number without fraction and exponent between the bounds.
func parseInteger(lexeme []byte, least, most int64) (int64, bool) {
	const longest = len("-9007199254740991")
	if len(lexeme) > longest {
		return 0, false
	}
	v, err := strconv.ParseInt(string(lexeme), 10, 64)
	return v, err == nil && v >= least && v <= most
}

// currencies holds the codes of ISO 4217, including those withdrawn since 2023, which old orders still name.
// XTS (testing) and XXX (no currency) are left out.
const currencies = "AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BOV BRL " +
	"BSD BTN BWP BYN BZD " +
	"CAD CDF CHE CHF CHW CLF CLP CNY COP COU CRC CUC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP " +
	"GBP GEL GHS GIP GMD " +
	"GNF GTQ GYD HKD HNL HRK HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD " +
	"KZT LAK LBP LKR LRD " +
	"LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB " +
	"PEN PGK PHP PKR PLN " +
	"PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SLL SOS SRD SSP STN SVC SYP SZL THB TJS TMT " +
	"TND TOP TRY TTD TWD " +
	"TZS UAH UGX USD USN UYI UYU UYW UZS VED VES VND VUV WST XAD XAF XAG XAU XBA XBB XBC XBD XCD XCG XDR " +
	"XOF XPD XPF XPT XSU " +
	"XUA YER ZAR ZMW ZWG ZWL"

func validCurrency(s string) bool {
	return len(s) == 3 && !strings.Contains(s, " ") && strings.Contains(currencies, s)
}
