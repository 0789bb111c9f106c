package provider

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"storefront.internal/shared/catalog"
	"storefront.internal/shared/settings"
)

func TestErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err       error
		reason    Reason
		after     time.Duration
		retryable bool
	}{
		{nil, "", 0, false},
		{&Throttled{RetryAfter: time.Second}, ReasonThrottled, time.Second, true},
		{&CredentialRefused{Status: 401}, ReasonCredentialRefused, 0, false},
		{&ShopSuspended{Status: 402}, ReasonShopSuspended, 0, false},
		{&Temporary{Reason: ReasonServerError, Status: 503, RetryAfter: time.Minute}, ReasonServerError,
			time.Minute, true},
		{&Temporary{Reason: "timeout", Err: context.DeadlineExceeded}, "timeout", 0, true},
		{&Malformed{Reason: "missing at /item/title"}, ReasonMalformed, 0, false},
		{&RequestRejected{Status: 422, Reason: ReasonRequestRejected}, ReasonRequestRejected, 0, false},
		{ErrNotFound, ReasonGone, 0, false},
		{context.Canceled, ReasonCancelled, 0, false},
		{errors.New("else"), ReasonInternal, 0, false},
	} {
		for _, err := range []error{c.err, fmt.Errorf("wrapped: %w", c.err)} {
			if c.err == nil && err != nil {
				continue
			}
			after, retryable := RetryAfter(err)
			if got := ReasonOf(err); got != c.reason || after != c.after || retryable != c.retryable {
				t.Errorf("%v: %q, %v, %v", err, got, after, retryable)
			}
			if err != nil && err.Error() == "" {
				t.Errorf("%#v has no text", err)
			}
		}
	}
}

func TestSetDocument(t *testing.T) {
	t.Parallel()
	sound := func() *catalog.CatalogAggregate {
		return &catalog.CatalogAggregate{Item: catalog.Item{Title: catalog.LocalizedText{"es": "x"},
			Status:   catalog.Active,
			Taxonomy: []catalog.TaxonomyRef{{ExternalID: "11", ParentExternalID: "10"}}},
			Variants:     []catalog.Variant{{ExternalID: "1"}},
			Availability: []catalog.Availability{{VariantExternalID: "1"}}}
	}
	f := Fetched{Entity: catalog.Product, ExternalID: "5"}
	f.SetDocument(sound())
	if f.Malformed != nil ||
		f.Document.(*catalog.CatalogAggregate).Item.Taxonomy[0].ParentExternalID != "10" {
		t.Errorf("sound: %+v", f)
	}
	for name, spoil := range map[string]func(f *Fetched, a *catalog.CatalogAggregate){
		"invalid_external_id": func(f *Fetched,
			_ *catalog.CatalogAggregate) {
			f.ExternalID = ""
		},
		"missing at /item/title": func(_ *Fetched,
			a *catalog.CatalogAggregate) {
			a.Item.Title = nil
		},
		"too_few at /variants": func(_ *Fetched, a *catalog.CatalogAggregate) {
			a.Variants,
				a.Availability = nil, nil
		},
		"invalid_status at /item/status": func(_ *Fetched,
			a *catalog.CatalogAggregate) {
			a.Item.Status = "sold"
		},
		"invalid_language at /item/title/e s": func(_ *Fetched,
			a *catalog.CatalogAggregate) {
			a.Item.Title = catalog.LocalizedText{"e s": "x"}
		},
		"missing at /item/taxonomy/0/external_id": func(_ *Fetched,
			a *catalog.CatalogAggregate) {
			a.Item.Taxonomy[0].ExternalID = ""
		},
		"invalid_url at /item/primary_media/url": func(_ *Fetched,
			a *catalog.CatalogAggregate) {
			a.Item.PrimaryMedia = &catalog.Media{URL: "x"}
		},
		"too_large": func(_ *Fetched, a *catalog.CatalogAggregate) {
			a.Item.Description = catalog.LocalizedText{"es": strings.Repeat("x", 5<<20)}
		},
		"invalid_currency at /variants/0/price/cur": func(_ *Fetched, a *catalog.CatalogAggregate) {
			a.Variants[0].Price = &catalog.Money{Amount: "1", Currency: "AR$"}
		},
	} {
		f, a := Fetched{Entity: catalog.Product, ExternalID: "5"}, sound()
		spoil(&f, a)
		if f.SetDocument(a); f.Malformed == nil || !strings.HasPrefix(f.Malformed.Reason, name) ||
			f.Document != nil {
			t.Errorf("%s: %v", name, f.Malformed)
		}
	}
}

type named struct{ Adapter }

func (named) Name() string { return "one" }

func TestRegistry(t *testing.T) {
	t.Parallel()
	r, err := NewRegistry(named{})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := r.Adapter("one"); !ok || !slices.Equal(r.Names(), []string{"one"}) {
		t.Errorf("names: %v", r.Names())
	}
	if _, ok := r.Adapter("other"); ok {
		t.Error("an adapter that is not mounted")
	}
	if _, err := NewRegistry(named{}, named{}); err == nil {
		t.Error("two adapters of one name")
	}
}

// FuzzVerify accepts a signature only when it is the one text of the body's HMAC.
func FuzzVerify(f *testing.F) {
	body := []byte(`{"store_id":123,"event":"product/updated","id":1948209}`)
	f.Add("test-secret", "29e24c14593ef6c1c87d70a8888fb590b9d841ba517b03e4acf65021dfaed1dd", body)
	f.Add("test-secret", "KeJMFFk+9sHIfXCoiI+1kLnYQbpRewPkrPZQId+u0d0=", body)
	f.Add("test-secret", "KeJMFFk+9sHIfXCoiI+1kLnYQbpRewPkrPZQId+u0d0=\n", body)
	f.Add("test-secret", "KeJMFFk+9sHIfXCoiI+1kLnYQbpRewPkrPZQId+u0d1=", body)
	f.Add("", "", []byte(nil))
	f.Fuzz(func(t *testing.T, secret, signature string, body []byte) {
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write(body)
		sum := mac.Sum(nil)
		secrets := []settings.Secret{"", settings.Secret(secret)}
		if got, want := VerifyHMAC(HexSignature, secrets, signature, body), secret != "" &&
			strings.ToLower(signature) == hex.EncodeToString(sum); got != want {
			t.Errorf("hex %q: %v", signature, got)
		}
		if got, want := VerifyHMAC(Base64Signature, secrets, signature, body), secret != "" &&
			signature == base64.StdEncoding.EncodeToString(sum); got != want {
			t.Errorf("base64 %q: %v", signature, got)
		}
		right := VerifyHMAC(HexSignature, secrets, hex.EncodeToString(sum), body) &&
			VerifyHMAC(Base64Signature, secrets, base64.StdEncoding.EncodeToString(sum), body)
		if right != (secret != "") {
			t.Errorf("the right signature: %v", right)
		}
	})
}
