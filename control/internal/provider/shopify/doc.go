// Package shopify owns what control knows of Shopify: its GraphQL Admin API, its bulk exports, its notifications and the
// meaning of its documents. It refuses what package provider refuses.
//
// What is particular: ids are global and are stripped to their number, which is what notifications say; the regular price
// is the one to compare with; texts are in the shop's one language; collections have no tree; the budget is counted in
// points per query, and a query that is throttled may be a 200; a null is "not found" only where nothing went wrong beside
// it. What the provider returned for an entity is its span of the answer: the cost beside it changes with every call.
//
// All products and all orders are read by a bulk export, grouped so that children follow their parent. The export is a
// file of lines that is read piece by piece, at a byte offset that the cursor keeps; a child whose parent is not the one
// before it, which a grouped file does not have, has its parent fetched alone.
package shopify
