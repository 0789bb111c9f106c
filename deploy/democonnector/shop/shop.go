package shop

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Entry is one entity as the shop would export it.
type Entry[D any] struct {
	ExternalID string
	UpdatedAt  time.Time
	Document   D
	Raw        any // what the shop's own system says of it
}

// updatedAt is when everything in the shop changed last.
func updatedAt() time.Time { return time.Date(2026, 1, 15, 9, 0, 0, 0, time.UTC) }

// Categories is the tree, parents first: 4 departments with 5 kinds each.
func Categories() []Entry[Category] {
	var all []Entry[Category]
	add := func(id string, name Text, parent string) {
		all = append(all, Entry[Category]{
			ExternalID: id, UpdatedAt: updatedAt(),
			Document: Category{Name: name, Handles: name.handles(), ParentExternalID: parent,
				Status: "visible"},
			Raw: map[string]any{"slug": id, "parent": parent},
		})
	}
	for _, d := range departments() {
		add(d.id, d.name, "")
		for _, k := range d.kinds {
			add(k.id, k.many, d.id)
		}
	}
	return all
}

// Products is what the shop sells: 300 products, of which two are not shown.
func Products() []Entry[Product] {
	var all []Entry[Product]
	n := 0
	for _, d := range departments() {
		for _, k := range d.kinds {
			for _, line := range lines() {
				n++
				all = append(all, product(n, d, k, line))
			}
		}
	}
	return all
}

func product(n int, d department, k kind, line Text) Entry[Product] {
	id := fmt.Sprintf("p-%04d", 1000+n)
	title := text(k.one["es"]+" "+line["es"], k.one["pt"]+" "+line["pt"], line["en"]+" "+k.one["en"])
	brand := brands()[n%len(brands())]
	picture := func(i int) Media {
		return Media{URL: fmt.Sprintf("https://cdn.shop.example/%s/%d.jpg", id, i), Alt: title}
	}
	item := Item{
		Title: title, Status: "active", Brand: brand, FreeShipping: n%4 == 0,
		Description: text("<p>"+title["es"]+" de la marca "+brand+".</p>",
			"<p>"+title["pt"]+" da marca "+brand+".</p>",
			"<p>"+title["en"]+" by "+brand+".</p>"),
		Handles: title.handles(), URLs: Text{}, PrimaryMedia: picture(1),
		Media: []Media{picture(1), picture(2)},
		Tags:  []string{k.id, d.id}, Taxonomy: []Node{{d.id}, {k.id}},
	}
	for _, language := range slices.Sorted(maps.Keys(item.Handles)) {
		item.URLs[language] = "https://shop.example/" + language + "/" + item.Handles[language]
	}
	switch n {
	case 150:
		item.Status = "hidden"
	case 300:
		item.Status = "draft"
	}
	document := Product{Item: item}
	for i := range 1 + n%3 {
		v, a := variant(n, i, id, k.cents)
		document.Variants, document.Availability = append(document.Variants, v),
			append(document.Availability, a)
	}
	return Entry[Product]{id, updatedAt(), document,
		map[string]any{"id": n, "sku_prefix": id, "warehouse": "BUE-1", "price_cents": k.cents}}
}

// variant is a colour of a product. Every fifth product has a promotion; the stock of every seventh is not
// counted.
func variant(n, i int, product string, cents int) (Variant, Availability) {
	c := colours()[(n+i)%len(colours())]
	cents += n % 15 * 100_00
	v := Variant{
		ExternalID: product + "-" + c.id, Status: "active", SKU: fmt.Sprintf("%s-%02d", product, i+1),
		Title:      c.name,
		Price:      pesos(cents),
		Attributes: []Attribute{{text("Color", "Cor", "Colour"), c.name}},
	}
	if n%5 == 0 {
		promotion := pesos(cents * 8 / 10)
		v.PromotionalPrice = &promotion
	}
	a := Availability{VariantExternalID: v.ExternalID, Sellable: "in_stock", AsOf: updatedAt()}
	if n%7 != 0 {
		quantity := (n*7 + i*13) % 40
		a.Quantity = &quantity
		if quantity == 0 {
			a.Sellable = "sold_out"
		}
	}
	return v, a
}

func pesos(cents int) Money { return Money{fmt.Sprintf("%d.%02d", cents/100, cents%100), "ARS"} }
