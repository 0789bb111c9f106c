// Package catalogue makes the contents of a shop from a seed: products in three languages with variants,
// categories and orders of invented buyers. It owns the contents and their traps (no price, stock that is not
// tracked, unpublished products); the shape of documents is each provider's. Everything is a pure function of
// seed and id.
package catalogue

import (
	"math/rand/v2"
	"time"
)

// Where the ids of each kind start.
const (
	FirstProduct  = 1001
	FirstCategory = 101
	FirstOrder    = 500_001
)

// Categories is how many categories every shop has: Roots of them have no parent.
const (
	Categories = 24
	Roots      = 6
)

// Words is a text in three languages.
type Words struct {
	ES string `json:"es"`
	PT string `json:"pt"`
	EN string `json:"en"`
}

// Source generates one shop's contents.
type Source struct {
	seed     uint64
	products int
	words    lexicon
}

// New makes the source of a shop with so many products.
func New(seed uint64, products int) *Source {
	return &Source{seed: seed, products: products, words: newLexicon()}
}

func (s *Source) random(id int64) *rand.Rand {
	// contents, no secrets; the id is positive
	return rand.New(rand.NewPCG(s.seed, uint64(id)))
}

// Created is when something with this id was made.
func (s *Source) Created(id int64) time.Time {
	start := time.Date(2024, 1, 1, 9, 0, 0, 0, time.UTC)
	return start.Add(time.Duration(id%20_000) * 37 * time.Minute)
}

// Updated is when something with this id was changed last.
func (s *Source) Updated(id int64) time.Time {
	return s.Created(id).Add(time.Duration(id%89) * time.Hour)
}

// Category is a node of the shop's tree.
type Category struct {
	ID     int64
	Parent int64 // 0: a root
	Name   Words
	Handle Words
}

// Category returns the category with this id.
func (s *Source) Category(id int64) Category {
	n := int(id - FirstCategory)
	root := s.words.roots[((n%Roots)+Roots)%Roots]
	c := Category{ID: id, Name: root}
	if n >= Roots {
		c.Parent = FirstCategory + int64(n%Roots)
		c.Name = join(root, s.words.nouns[n%len(s.words.nouns)])
	}
	c.Handle = slug(c.Name, id)
	return c
}

// Children are the ids of the categories below one.
func (s *Source) Children(id int64) []int64 {
	children := []int64{}
	for n := id - FirstCategory + Roots; id < FirstCategory+Roots && n < Categories; n += Roots {
		children = append(children, FirstCategory+n)
	}
	return children
}
