package catalog

// TaxonomyNodeDocument is a node of the shop's taxonomy: the document of entity category.
type TaxonomyNodeDocument struct {
	TaxonomyID       TaxonomyID    `json:"taxonomy_id"`
	ExternalID       string        `json:"external_id"`
	Name             LocalizedText `json:"name"`
	Handles          LocalizedText `json:"handles,omitempty"`
	ParentID         TaxonomyID    `json:"parent_id,omitempty"`
	ParentExternalID string        `json:"parent_external_id,omitempty"`
	Status           string        `json:"status,omitempty"` // opaque, as the platform names it
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
	w.textMember("taxonomy_id", string(d.TaxonomyID))
	w.textMember("external_id", d.ExternalID)
	w.localized("name", d.Name)
	w.localized("handles", d.Handles)
	w.textMember("parent_id", string(d.ParentID))
	w.textMember("parent_external_id", d.ParentExternalID)
	w.textMember("status", d.Status)
	w.close('}')
}

func readCategory(r *reader, root int) *TaxonomyNodeDocument {
	return &TaxonomyNodeDocument{
		Name:             r.localized(r.need(root, "name")),
		Handles:          r.localized(r.get(root, "handles")),
		ParentExternalID: r.externalID(r.get(root, "parent_external_id")),
		Status:           r.shortText(r.get(root, "status"), InvalidStatus),
	}
}
