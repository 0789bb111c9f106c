// Package payload owns the loose JSON that providers send: numbers as strings and strings as numbers, empty
// arrays in place of empty objects, null in place of absent members, dates in four forms, URLs without a
// scheme, tags joined by commas. It reads each into the catalog's types.
//
// Nothing is guessed: what a provider did not say stays absent, and an unknown count is not 0. Errors name
// rules and members, never values.
//
// A text may be hostile. Check counts its values before anything is made of them, Elements stops at the first
// element too many, and List bounds the lists inside an entity.
package payload
