package shop

import "strings"

// text is one meaning in the three languages of the shop.
func text(es, pt, en string) Text { return Text{"es": es, "pt": pt, "en": en} }

type department struct {
	id    string
	name  Text
	kinds []kind
}

// kind is a category's products: its name in the plural, and of one product.
type kind struct {
	id        string
	many, one Text
	cents     int // of the plainest one
}

// departments are the top of the tree; the kinds are its leaves: 20 of them.
func departments() []department {
	return []department{
		{"clothing", text("Ropa", "Roupas", "Clothing"), []kind{
			{"t-shirts", text("Remeras", "Camisetas", "T-shirts"), text("Remera", "Camiseta", "T-shirt"),
				1_490_00},
			{"jackets", text("Chaquetas", "Jaquetas", "Jackets"), text("Chaqueta", "Jaqueta", "Jacket"),
				8_990_00},
			{"trousers", text("Pantalones", "Calças", "Trousers"), text("Pantalón", "Calça", "Trousers"),
				4_990_00},
			{"dresses", text("Vestidos", "Vestidos", "Dresses"), text("Vestido", "Vestido", "Dress"),
				5_490_00},
			{"jumpers", text("Pulóveres", "Suéteres", "Jumpers"), text("Pulóver", "Suéter", "Jumper"),
				3_990_00},
		}},
		{"shoes", text("Calzado", "Calçados", "Shoes"), []kind{
			{"trainers", text("Zapatillas", "Tênis", "Trainers"), text("Zapatilla", "Tênis", "Trainer"),
				7_490_00},
			{"boots", text("Botas", "Botas", "Boots"), text("Bota", "Bota", "Boot"), 9_490_00},
			{"sandals", text("Sandalias", "Sandálias", "Sandals"), text("Sandalia", "Sandália", "Sandal"),
				2_990_00},
			{"slippers", text("Pantuflas", "Pantufas", "Slippers"), text("Pantufla", "Pantufa", "Slipper"),
				1_290_00},
			{"clogs", text("Zuecos", "Tamancos", "Clogs"), text("Zueco", "Tamanco", "Clog"), 3_490_00},
		}},
		{"home", text("Hogar", "Casa", "Home"), []kind{
			{"cushions", text("Almohadones", "Almofadas", "Cushions"),
				text("Almohadón", "Almofada", "Cushion"), 1_190_00},
			{"blankets", text("Mantas", "Mantas", "Blankets"), text("Manta", "Manta", "Blanket"), 2_790_00},
			{"lamps", text("Lámparas", "Luminárias", "Lamps"), text("Lámpara", "Luminária", "Lamp"),
				6_290_00},
			{"rugs", text("Alfombras", "Tapetes", "Rugs"), text("Alfombra", "Tapete", "Rug"), 7_990_00},
			{"baskets", text("Canastos", "Cestos", "Baskets"), text("Canasto", "Cesto", "Basket"), 1_990_00},
		}},
		{"accessories", text("Accesorios", "Acessórios", "Accessories"), []kind{
			{"bags", text("Bolsos", "Bolsas", "Bags"), text("Bolso", "Bolsa", "Bag"), 4_290_00},
			{"belts", text("Cinturones", "Cintos", "Belts"), text("Cinturón", "Cinto", "Belt"), 1_690_00},
			{"hats", text("Sombreros", "Chapéus", "Hats"), text("Sombrero", "Chapéu", "Hat"), 1_890_00},
			{"scarves", text("Bufandas", "Cachecóis", "Scarves"), text("Bufanda", "Cachecol", "Scarf"),
				1_590_00},
			{"wallets", text("Billeteras", "Carteiras", "Wallets"), text("Billetera", "Carteira", "Wallet"),
				2_190_00},
		}},
	}
}

// lines are the 15 products of each kind.
func lines() []Text {
	return []Text{
		text("estilo clásico", "estilo clássico", "Classic"), text("de algodón", "de algodão", "Cotton"),
		text("de lino", "de linho", "Linen"),
		text("de lana", "de lã", "Wool"), text("de la Patagonia", "da Patagônia", "Patagonia"),
		text("estilo urbano", "estilo urbano", "Urban"),
		text("de verano", "de verão", "Summer"), text("de invierno", "de inverno", "Winter"),
		text("artesanal", "artesanal", "Handmade"),
		text("minimalista", "minimalista", "Minimal"), text("retro", "retrô", "Retro"),
		text("con estampa", "com estampa", "Printed"),
		text("a rayas", "com listras", "Striped"), text("premium", "premium", "Premium"),
		text("de material reciclado", "de material reciclado", "Recycled"),
	}
}

type colour struct {
	id   string
	name Text
}

func colours() []colour {
	return []colour{
		{"black", text("Negro", "Preto", "Black")}, {"white", text("Blanco", "Branco", "White")},
		{"red", text("Rojo", "Vermelho", "Red")},
		{"blue", text("Azul", "Azul", "Blue")}, {"green", text("Verde", "Verde", "Green")},
	}
}

func brands() []string { return []string{"Sol & Luna", "Norte", "Andes", "Río", "Pampa"} }

// handles are the texts as parts of a URL.
func (t Text) handles() Text {
	plain := strings.NewReplacer("á", "a", "ã", "a", "é", "e", "ê", "e", "í", "i", "ó", "o", "ô", "o", "õ",
		"o", "ú", "u", "ç", "c", " ", "-")
	out := Text{}
	for language, s := range t {
		out[language] = plain.Replace(strings.ToLower(s))
	}
	return out
}
