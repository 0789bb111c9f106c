package signalrules

import (
	_ "embed"
	"strings"
)

// timezoneNames lists the IANA time-zone names, one per line, as the Go distribution of the toolchain holds
// them.
//
//go:generate sh -c "unzip -Z1 $(go env GOROOT)/lib/time/zoneinfo.zip | grep -v '/$' | LC_ALL=C sort > timezones.txt"
//go:embed timezones.txt
var timezoneNames string

// newTimezones returns the set of time-zone names. A look-up needs no files, unlike time.LoadLocation.
func newTimezones() map[string]struct{} {
	set := map[string]struct{}{}
	for name := range strings.FieldsSeq(timezoneNames) {
		set[name] = struct{}{}
	}
	return set
}
