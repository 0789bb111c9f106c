// Package shopify owns what control knows of Shopify: its GraphQL Admin API, its bulk exports, its webhooks
// and the meaning of its documents.
//
// What is special: ids are global ids and are stored as their number, which is what webhooks carry; the
// regular price is `compareAtPrice`; texts are in the shop's one language; collections have no tree; the rate
// limit is counted in points per query, and a throttled query may have status 200; a null means "not found"
// only when the response has no errors. What the provider returned for an entity is its part of the response:
// the cost beside it changes with every call.
//
// All products and all orders are read by a bulk export, grouped so that children follow their parent. The
// adapter reads the file of lines chunk by chunk, at a byte offset that the cursor keeps. The parent of a
// child that does not follow it is fetched alone.
//
// To read another field: add it to queries.go and to the struct and the document in mapping.go or order.go.
// To subscribe to another topic: add it to WebhookTopics, and its subject to topicKind.
package shopify
