// Package woocommerce owns what control knows of WooCommerce: its REST API (v3), its webhooks and the meaning
// of its documents.
//
// What is special: a shop is a host of the merchant's own, so a response may come from a cache, a firewall or
// a page of HTML, and only errors with the shop's own code count as refusals; an empty price is unknown;
// dates are in UTC without a zone; texts are in the shop's one language; the variations of a product are a
// listing of their own; no webhook tells of categories, which need a catch-up; webhooks are not retried and
// are disabled after five failures.
//
// Listings are counted by pages in the order of ids. When a page shows fewer entities in all than the one
// before, deletions moved the rest, and the page before is read again.
//
// To read another field: add it to the struct and the document in mapping.go or order.go. To subscribe to
// another topic: add it to WebhookTopics, and its subject to ParseWebhook.
package woocommerce
