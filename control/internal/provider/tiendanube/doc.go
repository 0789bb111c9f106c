// Package tiendanube owns what control knows of Tiendanube (Nuvemshop in Brazil): its REST API, its webhooks
// and the meaning of its documents.
//
// What is special: the credential does not expire but is revoked with the app; every call for a shop that has
// not paid is a 402; a page that is empty or behind the last one is a 404; texts come by language, and as an
// empty array when there is none; a null price is not free; ids and counts come as numbers and as strings;
// dates have offsets of two forms.
//
// Listings are read by since_id, not by page: a deletion during a listing would move an entity to a page that
// was read already. When a listing is not in the order of ids, pages are counted.
//
// To read another field: add it to the struct and the document in mapping.go or order.go. To subscribe to
// another topic: add it to WebhookTopics, and to eventKind when it is not about a product, a category or an
// order.
package tiendanube
