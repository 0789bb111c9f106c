package catalogue

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Product is one article.
type Product struct {
	ID                         int64
	Title, Description, Handle Words
	Brand                      string // "": none
	Tags                       []string
	Published, FreeShipping    bool
	Categories                 []int64
	Images                     []Image
	Options                    []Words // names of what the variants differ in
	Variants                   []Variant
	Created, Updated           time.Time
}

// Image is a picture; the one at position 1 is the main one.
type Image struct {
	ID       int64
	Position int
	URL      string
}

// Variant is one form of a product that is sold.
type Variant struct {
	ID           int64
	Position     int
	Values       []Words // in the order of the product's options
	SKU, Barcode string
	Cents        int // 0: unknown
	PromoCents   int // 0: no promotion
	Tracked      bool
	Stock        int // negative after sales without stock
}

// Product returns the product with this id, which need not be one of the shop's.
func (s *Source) Product(id int64) Product {
	random := s.random(id)
	title := join(pick(random, s.words.nouns), pick(random, s.words.looks))
	p := Product{
		ID: id, Title: numbered(title, id), Handle: slug(title, id), Description: describe(title),
		Brand: pick(random, s.words.brands), Published: id%50 != 0, FreeShipping: random.IntN(4) == 0,
		Created: s.Created(id), Updated: s.Updated(id),
	}
	if id%13 == 0 {
		p.Brand = ""
	}
	first := random.IntN(len(s.words.tags))
	for i := range 1 + random.IntN(3) {
		p.Tags = append(p.Tags, s.words.tags[(first+i)%len(s.words.tags)])
	}
	leaf := int64(random.IntN(Categories))
	p.Categories = append(p.Categories, FirstCategory+leaf)
	if leaf >= Roots && random.IntN(2) == 0 {
		p.Categories = append(p.Categories, FirstCategory+leaf%Roots)
	}
	for i := range 1 + random.IntN(3) {
		p.Images = append(p.Images,
			Image{id*10 + int64(i), i + 1, fmt.Sprintf("https://cdn.shop.example/%d-%d.jpg", id, i+1)})
	}
	s.addVariants(&p, random)
	return p
}

// addVariants gives one variant without options, or one per colour, or one per colour and size.
func (s *Source) addVariants(p *Product, random *rand.Rand) {
	values := [][]Words{nil}
	switch p.ID % 3 {
	case 1:
		p.Options = []Words{{"Color", "Cor", "Color"}}
		values = [][]Words{{s.words.colours[0]}, {s.words.colours[1]}}
	case 2:
		p.Options = []Words{{"Color", "Cor", "Color"}, {"Talle", "Tamanho", "Size"}}
		values = nil
		for _, colour := range s.words.colours[:2] {
			for _, size := range s.words.sizes {
				values = append(values, []Words{colour, size})
			}
		}
	}
	cents := 500 + random.IntN(20_000)*5
	for i, v := range values {
		variant := Variant{
			ID: p.ID*100 + int64(i) + 1, Position: i + 1, Values: v, SKU: fmt.Sprintf("SKU-%d-%d", p.ID, i+1),
			Barcode: fmt.Sprintf("77%011d", p.ID*100+int64(i)), Cents: cents + i*100, Tracked: p.ID%10 != 0,
			Stock: random.IntN(60) - 1,
		}
		if p.ID%4 == 0 {
			variant.PromoCents = variant.Cents * 8 / 10
		}
		if p.ID%97 == 0 {
			variant.Cents, variant.PromoCents = 0, 0
		}
		p.Variants = append(p.Variants, variant)
	}
}

func pick[T any](random *rand.Rand, from []T) T { return from[random.IntN(len(from))] }

func numbered(w Words, id int64) Words {
	n := fmt.Sprintf(" %d", id)
	return Words{w.ES + n, w.PT + n, w.EN + n}
}

func describe(w Words) Words {
	return Words{
		"<p>" + w.ES + " &mdash; hecha para durar.</p>", "<p>" + w.PT + " &mdash; feita para durar.</p>",
		"<p>" + w.EN + " &mdash; made to last.</p>",
	}
}

// Money writes cents as a decimal text.
func Money(cents int) string { return fmt.Sprintf("%d.%02d", cents/100, cents%100) }
