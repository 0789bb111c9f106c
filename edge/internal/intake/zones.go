package intake

import (
	_ "embed"
	"strings"
)

// zoneNames lists the IANA time-zone names, one per line, as the Go distribution of the toolchain holds them.
//
//go:generate sh -c "unzip -Z1 $(go env GOROOT)/lib/time/zoneinfo.zip | grep -v '/$' | LC_ALL=C sort > zones.txt"
//go:embed zones.txt
var zoneNames string

// newZones returns the set of time-zone names: a look-up in memory, as time.LoadLocation would read files.
func newZones() map[string]struct{} {
	names := strings.Fields(zoneNames)
	zones := make(map[string]struct{}, len(names))
	for _, name := range names {
		zones[name] = struct{}{}
	}
	return zones
}
