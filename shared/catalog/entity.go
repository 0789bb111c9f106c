package catalog

import (
	"slices"

	"storefront.internal/shared/ident"
)

// Entity is the kind of an observed resource.
type Entity string

// The entities. Their documents are CatalogAggregate, TaxonomyNodeDocument, OrderDocument.
const (
	Product  Entity = "product"
	Category Entity = "category"
	Order    Entity = "order"
)

// Entities returns the closed set.
func Entities() []Entity { return []Entity{Product, Category, Order} }

// ParseEntity returns the entity of that name.
func ParseEntity(name string) (Entity, bool) {
	if e := Entity(name); slices.Contains(Entities(), e) {
		return e, true
	}
	return "", false
}

// ID returns our id of the entity with that external id, which is the entity_id in the result of an
// observation.
func (e Entity) ID(c ident.ConnectionID, externalID string) string {
	switch e {
	case Product:
		return string(NewItemID(c, externalID))
	case Category:
		return string(NewTaxonomyID(c, externalID))
	default:
		return string(NewOrderID(c, externalID))
	}
}

// Operation says what happened to an entity.
type Operation string

// The closed set of operations.
const (
	Upsert Operation = "upsert"
	Delete Operation = "delete"
)

// ParseOperation returns the operation of that name.
func ParseOperation(name string) (Operation, bool) {
	if o := Operation(name); o == Upsert || o == Delete {
		return o, true
	}
	return "", false
}

// Status is the state of an item (active, hidden, draft) or of a variant (active, hidden).
type Status string

// The closed set of states.
const (
	Active Status = "active"
	Hidden Status = "hidden"
	Draft  Status = "draft"
)

type (
	// TaxonomyID names a node of a shop's taxonomy.
	TaxonomyID string
	// OrderID names an order.
	OrderID string
)

// NewItemID derives the id of an item from the parts "product", external id.
func NewItemID(c ident.ConnectionID, externalID string) ident.ItemID {
	return ident.ItemID(ident.Derive(ident.Item, c, string(Product), externalID))
}

// NewVariantID derives the id of a variant from the parts "variant", external id of the item, external id of
// the variant: external ids of variants are unique within their item only.
func NewVariantID(c ident.ConnectionID, itemExternalID, externalID string) ident.VariantID {
	return ident.VariantID(ident.Derive(ident.Variant, c, "variant", itemExternalID, externalID))
}

// NewTaxonomyID derives the id of a taxonomy node from the parts "category", external id.
func NewTaxonomyID(c ident.ConnectionID, externalID string) TaxonomyID {
	return TaxonomyID(ident.Derive(ident.Taxonomy, c, string(Category), externalID))
}

// NewOrderID derives the id of an order from the parts "order", external id.
func NewOrderID(c ident.ConnectionID, externalID string) OrderID {
	return OrderID(ident.Derive(ident.Order, c, string(Order), externalID))
}
