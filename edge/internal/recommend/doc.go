// Package recommend owns operation E1 (contract, section 2 "Decisions"): it asks the engine what to recommend, mints
// the Decision from which signals will hang, and answers. It refuses to fail because something behind it does: when
// the engine is late, failing or not configured, the fallback answers, and with no fallback an empty list. Recording
// the Decision is not awaited, since its id proves itself by a MAC.
package recommend
