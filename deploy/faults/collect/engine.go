package collect

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// engine reads the debug routes of the demo engine.
func (c *collector) engine(ctx context.Context) error {
	return errors.Join(
		list(ctx, c.EngineURL+"/debug/interactions", c.addReceipt),
		list(ctx, c.EngineURL+"/debug/observations", c.addEnvelope),
		list(ctx, c.EngineURL+"/debug/snapshots", c.addSnapshotRead),
		list(ctx, c.EngineURL+"/debug/refusals", c.addUnauthorized),
	)
}

// list reads the elements of the array in the response of a debug route one by one, because all of them are
// too large to be held twice.
func list(ctx context.Context, url string, keep func(json.RawMessage) error) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, answer.Status)
	}
	if err := elements(answer.Body, keep); err != nil {
		return fmt.Errorf("%s: %w", url, err)
	}
	return nil
}

func elements(body io.Reader, keep func(json.RawMessage) error) error {
	d := json.NewDecoder(body)
	for range 3 { // {, the name, [
		if _, err := d.Token(); err != nil {
			return err
		}
	}
	for d.More() {
		var element json.RawMessage
		if err := d.Decode(&element); err != nil {
			return err
		}
		if err := keep(element); err != nil {
			return err
		}
	}
	return nil
}

func (c *collector) addReceipt(element json.RawMessage) error {
	var r struct {
		Result      string          `json:"result"`
		Interaction json.RawMessage `json:"interaction"`
	}
	var i struct {
		Connection string `json:"connection_id"`
		Signal     string `json:"signal_id"`
		Decision   string `json:"decision_id"`
		Visitor    struct {
			ID string `json:"visitor_id"`
		} `json:"visitor"`
		Line *struct {
			Item     string `json:"item_id"`
			Variant  string `json:"variant_id"`
			Quantity int64  `json:"quantity"`
			Revision int64  `json:"revision"`
		} `json:"cart_line"`
	}
	if err := json.Unmarshal(element, &r); err != nil {
		return err
	}
	if err := json.Unmarshal(r.Interaction, &i); err != nil {
		return err
	}
	sum := sha256.Sum256(bytes.TrimSpace(r.Interaction))
	got := Receipt{Connection: c.intern(i.Connection), ID: i.Signal, Visitor: i.Visitor.ID,
		Decision: c.intern(i.Decision), Result: c.intern(r.Result),
		Digest: [16]byte(sum[:16])}
	if i.Line != nil {
		got.CartLine = &CartLine{Connection: got.Connection, Decision: got.Decision,
			Item: c.intern(i.Line.Item), Variant: c.intern(i.Line.Variant),
			Quantity: i.Line.Quantity, Revision: i.Line.Revision}
	}
	c.state.Engine.Receipts = append(c.state.Engine.Receipts, got)
	return nil
}

func (c *collector) addEnvelope(element json.RawMessage) error {
	var e struct {
		Data struct {
			Observation string `json:"observation_id"`
			Connection  string `json:"connection_id"`
			Entity      string `json:"entity"`
			External    string `json:"external_id"`
			Revision    int64  `json:"revision"`
		} `json:"data"`
	}
	if err := json.Unmarshal(element, &e); err != nil {
		return err
	}
	c.state.Engine.Events = append(c.state.Engine.Events, Envelope(e.Data))
	return nil
}

func (c *collector) addSnapshotRead(element json.RawMessage) error {
	var r struct {
		Observation string `json:"observation_id"`
		Connection  string `json:"connection_id"`
		Result      string `json:"result"`
		Detail      string `json:"detail"`
	}
	if err := json.Unmarshal(element, &r); err != nil {
		return err
	}
	c.state.Engine.SnapshotReads = append(c.state.Engine.SnapshotReads, SnapshotRead(r))
	return nil
}

func (c *collector) addUnauthorized(element json.RawMessage) error {
	var r struct {
		Call       string    `json:"call"`
		At         time.Time `json:"received_at"`
		Credential string    `json:"credential"`
	}
	if err := json.Unmarshal(element, &r); err != nil {
		return err
	}
	c.state.Engine.Unauthorized = append(c.state.Engine.Unauthorized,
		Unauthorized{At: r.At, Credential: r.Credential,
			Delivery: !strings.HasSuffix(r.Call, "/recommendations")})
	return nil
}
