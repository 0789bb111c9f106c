// Package payload owns the loose JSON that providers send: numbers as strings and strings as numbers, empty arrays in
// place of empty objects, null in place of absent, dates in four forms, addresses without a scheme, tags joined by commas.
// It reads each into what the catalog's vocabulary has for it, or says that it is none.
//
// It refuses to guess: what a provider did not say stays absent, and an unknown count is not 0. Its errors and the flaws
// that follow from it name rules, never values.
package payload
