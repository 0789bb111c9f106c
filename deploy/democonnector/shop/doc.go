// Package shop is an invented shop: a tree of categories and 300 products in Spanish, Portuguese and English,
// with variants, prices, promotions, pictures and stock. It is the same in every run, byte for byte. It
// stands for the system that a real connector reads from.
package shop
