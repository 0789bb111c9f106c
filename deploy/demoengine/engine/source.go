package engine

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// source is where snapshots are read.
type source struct {
	baseURL, token string
	client         *http.Client
}

// read fetches the snapshot of an observation and compares it with the event and the digests.
func (s *source) read(ctx context.Context, o Observed) (p product, result, detail string) {
	kind := "canonical"
	if o.Snapshot == "raw" {
		kind = "raw"
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet,
		s.baseURL+"/internal/v1/observations/"+o.ObservationID+"/"+kind, nil)
	if err != nil {
		return p, SnapshotMismatch, err.Error()
	}
	r.Header.Set("Authorization", "Bearer "+s.token)
	r.Header.Set("Accept-Encoding", "identity") // Content-Digest is of the body as it is sent
	res, err := s.client.Do(r)
	if err != nil {
		return p, SnapshotUnreachable, err.Error()
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	switch {
	case err != nil:
		return p, SnapshotUnreachable, err.Error()
	case res.StatusCode == http.StatusNotFound:
		return p, SnapshotMissing, ""
	case res.StatusCode != http.StatusOK:
		return p, SnapshotUnreachable, res.Status
	}
	sum := sha256.Sum256(body)
	want := "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
	if res.Header.Get("Content-Digest") != want {
		return p, SnapshotMismatch,
			fmt.Sprintf("Content-Digest is %q, of the body it is %q", res.Header.Get("Content-Digest"), want)
	}
	if kind == "raw" {
		if got := digest(body); got != o.ContentDigest {
			return p, SnapshotMismatch, "the body's digest is " + got
		}
		return productFromRaw(body, o), SnapshotRead, ""
	}
	return check(body, o)
}

// check compares a canonical snapshot with the event and returns its product.
func check(body []byte, o Observed) (p product, result, detail string) {
	var got struct {
		Observed
		Provider string          `json:"provider"`
		Document json.RawMessage `json:"document"`
	}
	if err := json.Unmarshal(body, &got); err != nil {
		return p, SnapshotMismatch, "no JSON"
	}
	said := got.Observed
	// A snapshot lacks these.
	said.ConnectionID, said.Snapshot, said.Subject = o.ConnectionID, o.Snapshot, o.Subject
	switch {
	case said != o:
		return p, SnapshotMismatch,
			fmt.Sprintf("the snapshot is of %s %s %s revision %d %s, digest %s", said.ObservationID,
				said.Entity, said.Operation, said.Revision, said.ExternalID, said.ContentDigest)
	case got.Provider != "custom":
		return p, SnapshotMismatch, "provider " + got.Provider
	case (o.Operation == "delete") != (got.Document == nil):
		return p, SnapshotMismatch, "a " + o.Operation + " with the wrong document"
	case digest(got.Document) != o.ContentDigest:
		return p, SnapshotMismatch, "the document's digest is " + digest(got.Document)
	}
	if o.Entity == "product" && got.Document != nil {
		p = productFromDocument(got.Document)
	}
	return p, SnapshotRead, ""
}

// digest is the content digest of a document's bytes; of a delete, of the empty string.
func digest(document []byte) string {
	sum := sha256.Sum256(document)
	return "sha256:" + hex.EncodeToString(sum[:])
}
