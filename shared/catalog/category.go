package catalog

// TaxonomyNodeDocument is a node of the store's taxonomy: the document of entity category (contract, section 3 "Custom
// documents").
type TaxonomyNodeDocument struct {
	TaxonomyID       TaxonomyID    `json:"taxonomy_id"`
	ExternalID       string        `json:"external_id"`
	Name             LocalizedText `json:"name"`
	Handles          LocalizedText `json:"handles,omitempty"`
	ParentID         TaxonomyID    `json:"parent_id,omitempty"`
	ParentExternalID string        `json:"parent_external_id,omitempty"`
	Status           string        `json:"status,omitempty"` // the provider's word
}

func (d *TaxonomyNodeDocument) complete(id Identity) {
	d.TaxonomyID = NewTaxonomyID(id.ConnectionID, id.ExternalID)
	d.ExternalID = id.ExternalID
	if d.ParentExternalID != "" {
		d.ParentID = NewTaxonomyID(id.ConnectionID, d.ParentExternalID)
	}
}

func (d *TaxonomyNodeDocument) write(w *writer) {
	w.open('{')
	w.word("taxonomy_id", string(d.TaxonomyID))
	w.word("external_id", d.ExternalID)
	w.localized("name", d.Name)
	w.localized("handles", d.Handles)
	w.word("parent_id", string(d.ParentID))
	w.word("parent_external_id", d.ParentExternalID)
	w.word("status", d.Status)
	w.close('}')
}

func readCategory(r *reader, root int) *TaxonomyNodeDocument {
	return &TaxonomyNodeDocument{
		Name:             r.localized(r.need(root, "name")),
		Handles:          r.localized(r.get(root, "handles")),
		ParentExternalID: r.externalID(r.get(root, "parent_external_id")),
		Status:           r.word(r.get(root, "status"), InvalidStatus),
	}
}
