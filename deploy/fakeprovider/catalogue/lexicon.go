package catalogue

import (
	"strconv"
	"strings"
)

// lexicon has the words of titles.
type lexicon struct {
	nouns, looks, colours, sizes, roots []Words
	brands, tags, firstNames, lastNames []string
}

func newLexicon() lexicon {
	return lexicon{
		nouns: []Words{
			{"Remera", "Camiseta", "T-shirt"}, {"Camisa", "Camisa", "Shirt"},
			{"Pantalón", "Calça", "Trousers"},
			{"Vestido", "Vestido", "Dress"}, {"Campera", "Jaqueta", "Jacket"},
			{"Zapatilla", "Tênis", "Sneaker"},
			{"Bota", "Bota", "Boot"}, {"Gorro", "Gorro", "Beanie"}, {"Bufanda", "Cachecol", "Scarf"},
			{"Mochila", "Mochila", "Backpack"},
			{"Cinturón", "Cinto", "Belt"}, {"Reloj", "Relógio", "Watch"}, {"Lámpara", "Luminária", "Lamp"},
			{"Silla", "Cadeira", "Chair"},
			{"Taza", "Caneca", "Mug"}, {"Manta", "Manta", "Blanket"},
		},
		looks: []Words{
			{"clásica", "clássica", "classic"}, {"ligera", "leve", "light"}, {"de lana", "de lã", "woollen"},
			{"de lino", "de linho", "linen"},
			{"urbana", "urbana", "urban"}, {"de verano", "de verão", "summer"},
			{"impermeable", "impermeável", "waterproof"},
			{"reciclada", "reciclada", "recycled"},
		},
		colours: []Words{{"Azul", "Azul", "Blue"}, {"Rojo", "Vermelho", "Red"}, {"Verde", "Verde", "Green"},
			{"Negro", "Preto", "Black"}},
		sizes: []Words{{"Chico", "Pequeno", "Small"}, {"Mediano", "Médio", "Medium"},
			{"Grande", "Grande", "Large"}},
		roots: []Words{
			{"Ropa", "Roupas", "Clothes"}, {"Calzado", "Calçados", "Shoes"},
			{"Accesorios", "Acessórios", "Accessories"},
			{"Casa", "Casa", "Home"}, {"Ofertas", "Ofertas", "Offers"}, {"Novedades", "Novidades", "News"},
		},
		brands:     []string{"Andina", "Ipê", "Norte", "Rioja", "Southwind"},
		tags:       []string{"algodón", "verano", "invierno", "oferta", "nuevo", "regalo"},
		firstNames: []string{"Ana", "Bruno", "Carla", "Diego", "Elisa", "Fábio"},
		lastNames:  []string{"Acosta", "Barros", "Correa", "Duarte", "Esteves"},
	}
}

func join(a, b Words) Words { return Words{a.ES + " " + b.ES, a.PT + " " + b.PT, a.EN + " " + b.EN} }

// slug is a handle in each language, unique by its id.
func slug(w Words, id int64) Words {
	one := func(text string) string {
		clean := strings.Map(func(r rune) rune {
			switch {
			case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
				return r
			case r == ' ', r == '-':
				return '-'
			}
			return -1
		}, strings.ToLower(text))
		return clean + "-" + strconv.FormatInt(id, 10)
	}
	return Words{one(w.ES), one(w.PT), one(w.EN)}
}
