// Package woocommerce owns what control knows of WooCommerce: its REST API (v3), its notifications and the meaning of its
// documents. It refuses what package provider refuses.
//
// What is particular: a store is a host of the merchant's own, so what answers may be a cache, a firewall or a page of
// HTML, and only an error of the shop's own making is believed; a price that is "" is not said; dates are in UTC without
// saying so; texts are in the store's one language; the variations of a product are a listing of their own; nothing tells
// of categories, which need a catch-up; notifications are never repeated and are switched off after five failures.
//
// Listings are counted by pages in the order of ids. When a page shows fewer entities in all than the one before, what
// follows moved, and the page before is read again.
package woocommerce
