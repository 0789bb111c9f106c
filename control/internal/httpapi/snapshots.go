package httpapi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"

	"storefront.internal/control/internal/observation"
	"storefront.internal/shared/fault"
)

// canonicalSnapshot is read_canonical.
func (a *API) canonicalSnapshot(ctx context.Context, r *request) (reply, error) {
	s, err := a.cfg.Observations.Snapshot(ctx, r.params.observation)
	if err != nil {
		return reply{}, err
	}
	rep, err := jsonReply(http.StatusOK, struct {
		ObservationID   string `json:"observation_id"`
		Provider        string `json:"provider"`
		ExternalStoreID string `json:"external_store_id"`
		Entity          string `json:"entity"`
		ExternalID      string `json:"external_id"`
		Revision        int64  `json:"revision"`
		Operation       string `json:"operation"`
		ContentDigest   string `json:"content_digest"`
	}{string(s.ObservationID), s.Provider, s.ExternalStoreID, string(s.Entity), s.ExternalID, s.Revision,
		string(s.Operation), s.ContentDigest})
	if err != nil {
		return reply{}, err
	}
	rep.body = appendDocument(rep.body, &s)
	return withDigest(r.http, rep), nil
}

// appendDocument appends the stored bytes unchanged: the digest covers them, so no encoder may touch them.
func appendDocument(body []byte, s *observation.Snapshot) []byte {
	if s.Document == nil {
		return body
	}
	body = append(bytes.TrimSuffix(body, []byte("}")), `,"document":`...)
	return append(append(body, s.Document...), '}')
}

// rawSnapshot is read_raw.
func (a *API) rawSnapshot(ctx context.Context, r *request) (reply, error) {
	raw, err := a.cfg.Observations.Raw(ctx, r.params.observation)
	if err != nil {
		return reply{}, err
	}
	rep := reply{status: http.StatusOK, contentType: "application/json", body: raw}
	switch {
	case len(raw) == 0: // a delete
		rep.body = nil
	case !json.Valid(raw): // the provider sent several answers, one value to a line
		rep.contentType = "application/jsonl"
	}
	return withDigest(r.http, rep), nil
}

// withDigest adds the strong validator and the digest (RFC 9530) of the body. The answer becomes a 304 when
// the client has that body.
func withDigest(r *http.Request, rep reply) reply {
	sum := sha256.Sum256(rep.body)
	rep.digest = "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
	rep.etag = `"` + hex.EncodeToString(sum[:]) + `"`
	if etagMatches(r.Header.Values("If-None-Match"), rep.etag) {
		return reply{status: http.StatusNotModified, etag: rep.etag}
	}
	return rep
}

// etagMatches compares weakly (RFC 9110, 13.1.2). Our tags contain no comma.
func etagMatches(lists []string, etag string) bool {
	for _, list := range lists {
		for tag := range strings.SplitSeq(list, ",") {
			tag = strings.TrimSpace(tag)
			if tag == "*" || strings.TrimPrefix(tag, "W/") == etag {
				return true
			}
		}
	}
	return false
}

// readCursor reads the query parameter of a page.
func readCursor(r *http.Request) (string, error) {
	values := r.URL.Query()["cursor"]
	if len(values) > 1 {
		return "", fault.New(fault.InvalidRequest, "The query names cursor twice.")
	}
	if len(values) == 0 {
		return "", nil
	}
	return values[0], nil
}
