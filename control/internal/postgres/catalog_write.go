package postgres

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"storefront.internal/control/internal/observation"
	"storefront.internal/shared/catalog"
	"storefront.internal/shared/deliveries"
	"storefront.internal/shared/ident"
	"storefront.internal/shared/pg"
)

// write writes everything that a folded batch changes.
func (c *Catalog) write(ctx context.Context, tx pgx.Tx, b *observation.Batch, outcomes []observation.Outcome,
	before, after map[observation.Key]observation.Applied, e *observation.Effects,
) error {
	parts := &parts{tx: tx, out: &pgx.Batch{}}
	if err := archive(ctx, parts, b, outcomes); err != nil {
		return err
	}
	out := parts.out
	queueReplayed(out, b, outcomes)
	queueSuperseded(out, b, outcomes, before, after)
	queueEntities(out, b.Source.ConnectionID, before, after)
	queueNodes(out, b.Source.ConnectionID, e.Nodes)
	if err := putAggregates(ctx, parts, b.Source.ConnectionID, e.Aggregates); err != nil {
		return err
	}
	queueLinks(out, b.Source.ConnectionID, e)
	if err := parts.send(ctx); err != nil {
		return err
	}
	envelopes, err := envelopesOf(b, outcomes)
	if err != nil {
		return err
	}
	return deliveries.Enqueue(ctx, tx, envelopes)
}

const insertIntoObservations = `
INSERT INTO control.observations (observation_id, minted_at, connection_id, entity, external_id, revision,
    operation, state, reason, content_digest, document, raw, source_updated_at)
`

const insertObservation = insertIntoObservations + `
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, nullif($9, ''), nullif($10, ''), $11, $12, $13)`

const insertObservations = insertIntoObservations + `
SELECT observation_id, $1, $2, entity, external_id, revision, operation,
    state, nullif(reason, ''), nullif(content_digest, ''), document, raw, source_updated_at
FROM unnest($3::text[], $4::text[], $5::text[], $6::bigint[], $7::text[], $8::text[], $9::text[], $10::text[],
    $11::bytea[], $12::bytea[], $13::timestamptz[])
    AS o (observation_id, entity, external_id, revision, operation, state, reason, content_digest, document,
        raw, source_updated_at)`

// archiveColumns holds observations by columns, as unnest takes them.
type archiveColumns struct {
	ids, entities, externals, operations, states, reasons, digests []string
	revisions                                                      []int64
	documents, raws                                                [][]byte
	updated                                                        []*time.Time
}

// archive queues the elements that are archived.
func archive(ctx context.Context, p *parts, b *observation.Batch, outcomes []observation.Outcome) error {
	var a archiveColumns
	queue := func() {
		if len(a.ids) > 0 {
			p.out.Queue(insertObservations, mintedAt(b.Elements[0].ID), b.Source.ConnectionID, a.ids,
				a.entities, a.externals,
				a.revisions, a.operations, a.states, a.reasons, a.digests, a.documents, a.raws, a.updated)
			a = archiveColumns{}
		}
	}
	for i := range b.Elements {
		e := &b.Elements[i]
		state, archived := b.State(e, outcomes[i])
		if !archived {
			continue
		}
		var document []byte
		if state == string(observation.Accepted) {
			document = b.CompletedDocument(e)
		}
		if len(e.Raw)+len(document) >= largeRow {
			if err := insertLargeObservation(ctx, p.tx, b, e, state, document); err != nil {
				return err
			}
			continue
		}
		a.add(e, state, document)
		if p.full(len(e.Raw) + len(document)) {
			queue()
			if err := p.send(ctx); err != nil {
				return err
			}
		}
	}
	queue()
	return nil
}

// parts sends the statements of a transaction in parts, so that the memory which their bytes need in the
// driver is that of a part and not that of a batch.
type parts struct {
	tx    pgx.Tx
	out   *pgx.Batch
	bytes int // that will be queued
}

// full counts bytes and reports whether the part has enough of them.
func (p *parts) full(n int) bool {
	p.bytes += n
	return p.bytes >= observation.PartBytes
}

// send sends what is queued.
func (p *parts) send(ctx context.Context) error {
	queued := *p.out
	*p.out, p.bytes = pgx.Batch{}, 0
	if queued.Len() == 0 {
		return nil
	}
	return p.tx.SendBatch(ctx, &queued).Close()
}

// largeRow is from how many bytes on a row is inserted alone, by insertLarge.
const largeRow = 256 << 10

// insertLarge inserts one row whose documents are large: nil, a string, or bytes for a column of type bytea.
// The driver copies the arguments of other statements into a buffer of its own, and that into the message.
func insertLarge(ctx context.Context, tx pgx.Tx, sql string, row ...any) error {
	values, formats := make([][]byte, len(row)), make([]int16, len(row))
	for i, value := range row {
		switch v := value.(type) {
		case string:
			values[i] = []byte(v)
		case []byte:
			values[i], formats[i] = v, pgx.BinaryFormatCode
		}
	}
	_, err := tx.Conn().PgConn().ExecParams(ctx, sql, values, nil, formats, nil).Close()
	return err
}

func insertLargeObservation(ctx context.Context, tx pgx.Tx, b *observation.Batch, e *observation.Element,
	state string, document []byte) error {
	var updated any
	if !e.SourceUpdatedAt.IsZero() {
		updated = e.SourceUpdatedAt.Format(time.RFC3339Nano)
	}
	return insertLarge(ctx, tx, insertObservation, string(e.ID), mintedAt(e.ID).Format(time.RFC3339Nano),
		string(b.Source.ConnectionID), string(e.Entity), e.ExternalID, strconv.FormatInt(e.Revision, 10),
		string(e.Operation), state, quarantineReason(e), e.Digest, document, e.Raw, updated)
}

// quarantineReason is empty for an element that is not quarantined.
func quarantineReason(e *observation.Element) string {
	if e.Quarantined == nil {
		return ""
	}
	return e.Quarantined.String()
}

func (a *archiveColumns) add(e *observation.Element, state string, document []byte) {
	var updated *time.Time
	if !e.SourceUpdatedAt.IsZero() {
		updated = &e.SourceUpdatedAt
	}
	a.ids = append(a.ids, string(e.ID))
	a.entities = append(a.entities, string(e.Entity))
	a.externals = append(a.externals, e.ExternalID)
	a.revisions = append(a.revisions, e.Revision)
	a.operations = append(a.operations, string(e.Operation))
	a.states = append(a.states, state)
	a.reasons = append(a.reasons, quarantineReason(e))
	a.digests = append(a.digests, e.Digest)
	a.documents = append(a.documents, document)
	a.raws = append(a.raws, e.Raw)
	a.updated = append(a.updated, updated)
}

const updateQuarantined = `
UPDATE control.observations
SET state = $3, reason = coalesce(nullif($4, ''), reason)
WHERE observation_id = $1 AND minted_at = $2`

// queueReplayed updates the state of the observation that the batch replays.
func queueReplayed(out *pgx.Batch, b *observation.Batch, outcomes []observation.Outcome) {
	if b.Replays == "" {
		return
	}
	state, reason := observation.StateSuperseded, ""
	switch outcomes[0].Status {
	case observation.Accepted:
		state = observation.StateReplayed
	case observation.Quarantined:
		state, reason = string(observation.Quarantined), b.Elements[0].Quarantined.String()
	}
	out.Queue(updateQuarantined, b.Replays, mintedAt(b.Replays), state, reason)
}

const supersedeQuarantined = `
UPDATE control.observations o
SET state = $5
FROM unnest($2::text[], $3::text[], $4::bigint[]) AS k (entity, external_id, revision)
WHERE o.connection_id = $1 AND o.entity = k.entity AND o.external_id = k.external_id
    AND o.state = 'quarantined' AND o.revision <= k.revision AND NOT o.observation_id = ANY ($6::text[])`

// queueSuperseded updates the state of observations that leave the quarantine. It is queued only for entities
// that have some there, since it looks into all days of the archive.
func queueSuperseded(out *pgx.Batch, b *observation.Batch, outcomes []observation.Outcome,
	before, after map[observation.Key]observation.Applied) {
	all, stay := b.Superseded(outcomes, before, after)
	if n := len(all); n > 0 {
		out.Queue(supersedeQuarantined, b.Source.ConnectionID,
			pg.Column(n, func(i int) string { return string(all[i].Key.Entity) }),
			pg.Column(n, func(i int) string { return all[i].Key.ExternalID }),
			pg.Column(n, func(i int) int64 { return all[i].Revision }),
			observation.StateSuperseded, texts(stay))
	}
}

// A fetch takes the number with which it is stored when it has ended.
const updateEntities = `
UPDATE control.entities e
SET revision = k.revision, operation = k.operation, content_digest = k.content_digest,
    observation_id = k.observation_id, fetch_seq = k.fetch_seq,
    stored_seq = CASE WHEN k.fetch_seq > 0 THEN nextval('control.fetch_seq') ELSE 0 END,
    quarantined_id = k.quarantined_id,
    quarantined_digest = k.quarantined_digest, quarantined_revision = k.quarantined_revision
FROM unnest($2::text[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::bigint[],
    $9::text[],
    $10::text[], $11::bigint[])
    AS k (entity, external_id, revision, operation, content_digest, observation_id, fetch_seq, quarantined_id,
        quarantined_digest, quarantined_revision)
WHERE e.connection_id = $1 AND e.entity = k.entity AND e.external_id = k.external_id`

func queueEntities(out *pgx.Batch, c ident.ConnectionID, before,
	after map[observation.Key]observation.Applied) {
	var keys []observation.Key
	var changed []observation.Applied
	for k, a := range after {
		if a != before[k] {
			keys, changed = append(keys, k), append(changed, a)
		}
	}
	if n := len(keys); n > 0 {
		entities, externals := keyColumns(keys)
		out.Queue(updateEntities, c, entities, externals,
			pg.Column(n, func(i int) int64 { return changed[i].Revision }),
			pg.Column(n, func(i int) string { return string(changed[i].Operation) }),
			pg.Column(n, func(i int) string { return changed[i].Digest }),
			pg.Column(n, func(i int) string { return string(changed[i].ObservationID) }),
			pg.Column(n, func(i int) int64 { return changed[i].FetchSeq }),
			pg.Column(n, func(i int) string { return string(changed[i].QuarantinedID) }),
			pg.Column(n, func(i int) string { return changed[i].QuarantinedDigest }),
			pg.Column(n, func(i int) int64 { return changed[i].QuarantinedRevision }))
	}
}

const updateNodes = `
UPDATE control.taxonomy_nodes t
SET document = k.document
FROM unnest($2::text[], $3::bytea[]) AS k (id, document)
WHERE t.connection_id = $1 AND t.taxonomy_id = k.id`

func queueNodes(out *pgx.Batch, c ident.ConnectionID, nodes map[catalog.TaxonomyID][]byte) {
	if len(nodes) > 0 {
		ids := slices.Collect(maps.Keys(nodes))
		out.Queue(updateNodes, c, texts(ids),
			pg.Column(len(ids), func(i int) []byte { return nodes[ids[i]] }))
	}
}

// The item's entity is locked, so no other transaction inserts the row at the same time.
const (
	insertIntoAggregates = `
INSERT INTO control.aggregates AS a (connection_id, item_id, refresh_revision, document, body, taxonomy_ids,
    sellable)
`
	orReplaceAggregate = `
ON CONFLICT (connection_id, item_id) DO UPDATE
SET refresh_revision = excluded.refresh_revision, document = excluded.document, body = excluded.body,
    taxonomy_ids = excluded.taxonomy_ids, sellable = excluded.sellable,
    refreshed_at = excluded.refreshed_at`

	insertAggregate = insertIntoAggregates + `
VALUES ($1, $2, $3, $4, $5, string_to_array($6, ','), $7)` + orReplaceAggregate
)

// insertAggregates passes taxonomy_ids as one text per item: unnest takes no array of arrays of different
// lengths.
const insertAggregates = insertIntoAggregates + `
SELECT $1, item_id, refresh_revision, document, body, string_to_array(taxonomy_ids, ','), sellable
FROM unnest($2::text[], $3::bigint[], $4::bytea[], $5::bytea[], $6::text[], $7::boolean[])
    AS k (item_id, refresh_revision, document, body, taxonomy_ids, sellable)
ORDER BY item_id COLLATE "C"` + orReplaceAggregate

// putAggregates queues the items that change.
func putAggregates(ctx context.Context, p *parts, c ident.ConnectionID, all []observation.Aggregate) error {
	var some []*observation.Aggregate
	var documents, bodies [][]byte
	queue := func() {
		if n := len(some); n > 0 {
			p.out.Queue(insertAggregates, c,
				pg.Column(n, func(i int) string { return string(some[i].ItemID) }),
				pg.Column(n, func(i int) int64 { return some[i].RefreshRevision }), documents, bodies,
				pg.Column(n, func(i int) string { return strings.Join(texts(some[i].TaxonomyIDs), ",") }),
				pg.Column(n, func(i int) bool { return some[i].Sellable }))
			some, documents, bodies = nil, nil, nil
		}
	}
	for i := range all {
		a := &all[i]
		document, body, err := a.Documents()
		if err != nil {
			return err
		}
		if len(document)+len(body) >= largeRow {
			if err := insertLargeAggregate(ctx, p.tx, c, a, document, body); err != nil {
				return err
			}
			continue
		}
		some, documents, bodies = append(some, a), append(documents, document), append(bodies, body)
		if p.full(len(document) + len(body)) {
			queue()
			if err := p.send(ctx); err != nil {
				return err
			}
		}
	}
	queue()
	return nil
}

func insertLargeAggregate(ctx context.Context, tx pgx.Tx, c ident.ConnectionID, a *observation.Aggregate,
	document, body []byte) error {
	return insertLarge(ctx, tx, insertAggregate, string(c), string(a.ItemID),
		strconv.FormatInt(a.RefreshRevision, 10), document, body, strings.Join(texts(a.TaxonomyIDs), ","),
		strconv.FormatBool(a.Sellable))
}

const insertLinks = `
INSERT INTO control.item_taxonomy (connection_id, taxonomy_id, item_id)
SELECT $1, taxonomy_id, item_id
FROM unnest($2::text[], $3::text[]) AS k (taxonomy_id, item_id)
ON CONFLICT DO NOTHING`

const deleteLinks = `
DELETE FROM control.item_taxonomy t
USING unnest($2::text[], $3::text[]) AS k (taxonomy_id, item_id)
WHERE t.connection_id = $1 AND t.taxonomy_id = k.taxonomy_id AND t.item_id = k.item_id`

func queueLinks(out *pgx.Batch, c ident.ConnectionID, e *observation.Effects) {
	for sql, links := range map[string][]observation.Link{insertLinks: e.AddLinks,
		deleteLinks: e.RemoveLinks} {
		if n := len(links); n > 0 {
			out.Queue(sql, c,
				pg.Column(n, func(i int) string { return string(links[i].TaxonomyID) }),
				pg.Column(n, func(i int) string { return string(links[i].ItemID) }))
		}
	}
}

// envelopesOf returns the queue entries for accepted elements, in their order.
func envelopesOf(b *observation.Batch, outcomes []observation.Outcome) ([]deliveries.Entry, error) {
	var entries []deliveries.Entry
	for i := range b.Elements {
		e := &b.Elements[i]
		if outcomes[i].Status != observation.Accepted {
			continue
		}
		body, err := b.Envelope(e)
		if err != nil {
			return nil, fmt.Errorf("observation %s: %w", e.ID, err)
		}
		entries = append(entries, deliveries.Entry{
			Kind: deliveries.Envelope, ConnectionID: b.Source.ConnectionID, LaneKey: b.LaneKey(e),
			ID: string(e.ID), Body: body,
		})
	}
	return entries, nil
}
