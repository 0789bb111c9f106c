// Package rfc3339 owns the one form of times in JSON: RFC 3339 with an upper-case T and Z or an offset when
// they are read, UTC with up to six digits of a fraction when they are written.
package rfc3339

import "time"

// Parse reads a time. It keeps the instant to the microsecond, in UTC, and cuts off what is finer. Leap
// seconds are invalid.
func Parse(s string) (time.Time, bool) {
	const form = "dddd-dd-ddTdd:dd:dd"
	if len(s) <= len(form) || !matches(s[:len(form)], form) {
		return time.Time{}, false
	}
	micros, zone, ok := parseFraction(s[len(form):])
	if !ok {
		return time.Time{}, false
	}
	offset, ok := parseOffset(zone)
	month, day := two(s[5:]), two(s[8:])
	hour, minute, second := two(s[11:]), two(s[14:]), two(s[17:])
	if !ok || month < 1 || month > 12 || hour > 23 || minute > 59 || second > 59 {
		return time.Time{}, false
	}
	t := time.Date(two(s)*100+two(s[2:]), time.Month(month), day, hour, minute, second, micros*1000, time.UTC)
	return t.Add(-offset), t.Day() == day // time.Date takes February 30 for a day of March
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

// parseOffset reads Z, +hh:mm or -hh:mm.
func parseOffset(s string) (time.Duration, bool) {
	switch {
	case s == "Z":
		return 0, true
	case !matches(s, "+dd:dd") && !matches(s, "-dd:dd") || two(s[1:]) > 23 || two(s[4:]) > 59:
		return 0, false
	}
	offset := time.Duration(two(s[1:]))*time.Hour + time.Duration(two(s[4:]))*time.Minute
	if s[0] == '-' {
		offset = -offset
	}
	return offset, true
}

// matches compares s with a form in which d stands for a digit.
func matches(s, form string) bool {
	if len(s) != len(form) {
		return false
	}
	for i := range len(s) {
		if digit := s[i] >= '0' && s[i] <= '9'; form[i] == 'd' && !digit || form[i] != 'd' &&
			s[i] != form[i] {
			return false
		}
	}
	return true
}

func two(s string) int { return int(s[0]-'0')*10 + int(s[1]-'0') }

// Append appends the time. It is time.AppendFormat with "2006-01-02T15:04:05.999999Z", only faster.
func Append(dst []byte, t time.Time) []byte {
	t = t.UTC()
	year, month, day := t.Date()
	if year < 0 || year > 9999 {
		return t.AppendFormat(dst, "2006-01-02T15:04:05.999999Z")
	}
	hour, minute, second := t.Clock()
	dst = appendTwo(appendTwo(dst, year/100), year%100)
	dst = appendTwo(append(dst, '-'), int(month))
	dst = appendTwo(append(dst, '-'), day)
	dst = appendTwo(append(dst, 'T'), hour)
	dst = appendTwo(append(dst, ':'), minute)
	dst = appendTwo(append(dst, ':'), second)
	if micros := t.Nanosecond() / 1000; micros > 0 {
		dst = append(dst, '.')
		dst = appendTwo(appendTwo(appendTwo(dst, micros/10_000), micros/100%100), micros%100)
		for dst[len(dst)-1] == '0' {
			dst = dst[:len(dst)-1]
		}
	}
	return append(dst, 'Z')
}

func appendTwo(dst []byte, n int) []byte { return append(dst, byte('0'+n/10), byte('0'+n%10)) }
