package catalogue

import (
	"fmt"
	"time"
)

// Order is one sale.
type Order struct {
	ID               int64
	Number           int
	Buyer            Buyer
	Lines            []Line
	Paid, Cancelled  bool
	Created, Updated time.Time
}

// Buyer is an invented person.
type Buyer struct {
	ID                      int64
	First, Last             string
	Email, Phone, Address   string
	City, Zip, IP, Identity string
}

// Line is what was sold.
type Line struct {
	ID       int64
	Product  Product
	Variant  Variant
	Quantity int
	Cents    int // of one
}

// Order returns the order with this id.
func (s *Source) Order(id int64) Order {
	random := s.random(id)
	n := int(id - FirstOrder)
	first, last := pick(random, s.words.firstNames), pick(random, s.words.lastNames)
	o := Order{
		ID: id, Number: 100 + n, Paid: id%3 != 0, Cancelled: id%7 == 0, Created: s.Created(id),
		Updated: s.Updated(id),
		Buyer: Buyer{
			ID: 900_000 + id%40, First: first, Last: last, Email: fmt.Sprintf("buyer-%d@mail.example", id),
			Phone:   fmt.Sprintf("+54 11 5%07d", id),
			Address: fmt.Sprintf("Calle %d", 1+random.IntN(900)), City: "Rosario", Zip: "2000",
			IP:       fmt.Sprintf("203.0.113.%d", random.IntN(256)),
			Identity: fmt.Sprintf("%08d", random.IntN(100_000_000)),
		},
	}
	for i := range 1 + random.IntN(3) {
		p := s.Product(FirstProduct + int64(random.IntN(max(s.products, 1))))
		v := pick(random, p.Variants)
		cents := v.Cents
		if v.PromoCents > 0 {
			cents = v.PromoCents
		}
		o.Lines = append(o.Lines,
			Line{ID: id*10 + int64(i), Product: p, Variant: v, Quantity: 1 + random.IntN(3), Cents: cents})
	}
	return o
}

// Cents is the sum of the lines.
func (o Order) Cents() int {
	sum := 0
	for _, l := range o.Lines {
		sum += l.Cents * l.Quantity
	}
	return sum
}
