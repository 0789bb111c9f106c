// Package tiendanube owns what control knows of Tiendanube, which is Nuvemshop in Brazil: its REST API, its notifications
// and the meaning of its documents. It refuses what package provider refuses.
//
// What is particular: the credential never expires but dies with the app; every call of a store that has not paid is a
// 402; an empty or too late page of a listing is a 404; texts come by language, and as an empty array when there is none;
// a price that is null is not free; ids and counts come as numbers and as strings; dates come with offsets of two forms.
//
// Listings are read by since_id, not by page: a deletion during a listing moves what follows it, and would hide an entity
// from one that counts pages. Where a listing turns out not to be in the order of ids, pages are counted after all.
package tiendanube
