// Package shop is a small shop that uses Storefront: an example to read. The pages are html/template
// (templates), the whole integration is one script (static/shop.js), and the panel "What happened"
// (static/panel.js, panel.go, faults.go) is no part of the integration. Carts and orders are in memory.
package shop
