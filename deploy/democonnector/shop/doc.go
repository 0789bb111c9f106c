// Package shop is a shop that does not exist: a tree of categories and 300 products in Spanish, Portuguese and English, with
// variants, prices, promotions, pictures and stock. It is the same in every run, byte for byte, and stands for whatever system
// a real connector reads from.
package shop
