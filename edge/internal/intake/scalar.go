package intake

import "time"

// integer reads a number without fraction or exponent between least and most.
func (sc *scanner) integer(v *value, least, most int64) (int32, bool) {
	const maxDigits = 10 // more do not fit any range here
	if v.kind != number || v.flags&fractional != 0 {
		return 0, false
	}
	digits := sc.b[v.start:v.end]
	negative := digits[0] == '-'
	if negative {
		digits = digits[1:]
	}
	if len(digits) > maxDigits {
		return 0, false
	}
	var n int64
	for _, c := range digits {
		n = n*10 + int64(c-'0')
	}
	if negative {
		n = -n
	}
	return int32(n), n >= least && n <= most
}

// parseTime reads RFC 3339 with an upper-case T and Z or an offset (contract, section 1 "Times"). The instant is kept
// to the microsecond, in UTC; what is finer is cut off. A second 60 is invalid.
func parseTime(s string) (time.Time, bool) {
	const form = "dddd-dd-ddTdd:dd:dd"
	if len(s) <= len(form) || !fits(s[:len(form)], form) {
		return time.Time{}, false
	}
	year, month, day := two(s)*100+two(s[2:]), two(s[5:]), two(s[8:])
	hour, minute, second := two(s[11:]), two(s[14:]), two(s[17:])
	if month < 1 || month > 12 || day < 1 || day > daysIn(year, month) || hour > 23 || minute > 59 || second > 59 {
		return time.Time{}, false
	}
	micros, rest, ok := parseFraction(s[len(form):])
	if !ok {
		return time.Time{}, false
	}
	offset, ok := parseOffset(rest)
	if !ok {
		return time.Time{}, false
	}
	t := time.Date(year, time.Month(month), day, hour, minute, second, micros*1000, time.UTC)
	return t.Add(-offset), true
}

// fits reports whether s has the form: d stands for a digit, everything else for itself.
func fits(s, form string) bool {
	for i := range len(form) {
		if form[i] == 'd' && (s[i] < '0' || s[i] > '9') || form[i] != 'd' && s[i] != form[i] {
			return false
		}
	}
	return true
}

func two(s string) int { return int(s[0]-'0')*10 + int(s[1]-'0') }

func daysIn(year, month int) int {
	switch month {
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	default:
		return 31
	}
}

// parseFraction reads ".digits", or nothing.
func parseFraction(s string) (micros int, rest string, ok bool) {
	if s[0] != '.' {
		return 0, s, true
	}
	i, unit := 1, 100_000
	for ; i < len(s) && s[i] >= '0' && s[i] <= '9'; i++ {
		micros += int(s[i]-'0') * unit
		unit /= 10
	}
	return micros, s[i:], i > 1
}

// parseOffset reads Z or ±hh:mm.
func parseOffset(s string) (time.Duration, bool) {
	if s == "Z" {
		return 0, true
	}
	if len(s) != len("+hh:mm") || s[0] != '+' && s[0] != '-' || !fits(s[1:], "dd:dd") {
		return 0, false
	}
	hours, minutes := two(s[1:]), two(s[4:])
	if hours > 23 || minutes > 59 {
		return 0, false
	}
	d := time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute
	if s[0] == '-' {
		d = -d
	}
	return d, true
}

func allDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}
