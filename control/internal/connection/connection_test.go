package connection

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"strings"
	"testing"
	"time"

	"storefront.internal/shared/fault"
	"storefront.internal/shared/ident"
)

type fakeStore struct {
	disabled bool
	created  []NewConnection
	macs     [][sha256.Size]byte
	asked    int
	fail     error
}

func (f *fakeStore) CreateCustom(_ context.Context, c NewConnection) error {
	f.created = append(f.created, c)
	return f.fail
}

func (f *fakeStore) ReplaceToken(_ context.Context, _ ident.ConnectionID, _ ident.ConnectorTokenID,
	mac [sha256.Size]byte) error {
	f.macs = append(f.macs, mac)
	return f.fail
}

func (f *fakeStore) HolderOf(_ context.Context, mac [sha256.Size]byte) (Custom, error) {
	f.asked++
	for _, c := range f.created {
		if c.TokenHMAC == mac {
			return Custom{ID: c.ID, StoreID: c.StoreID, Disabled: f.disabled}, f.fail
		}
	}
	return Custom{}, fault.New(fault.NotFound, "")
}

func TestATokenOpensItsOwnConnection(t *testing.T) {
	t.Parallel()
	store := &fakeStore{}
	s := New(store, []byte("pepper"), time.Now)
	one, err1 := s.Create(t.Context(), "one", nil)
	two, err2 := s.Create(t.Context(), "two", nil)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	if c, err := s.Identify(t.Context(), one.ConnectionID, one.Token); err != nil ||
		c.ID != one.ConnectionID || c.StoreID != one.StoreID {
		t.Errorf("got %+v, %v", c, err)
	}
	refused := func(s *Service, c ident.ConnectionID, token string) {
		t.Helper()
		if holder, err := s.Identify(t.Context(), c, token); !fault.Is(err, fault.Unauthorized) ||
			holder.ID != "" {
			t.Errorf("%q: %+v, %v", token, holder, err)
		}
	}
	refused(s, two.ConnectionID, one.Token)
	refused(s, one.ConnectionID, newToken())
	refused(New(store, []byte("another pepper"), time.Now), one.ConnectionID, one.Token)
	asked := store.asked
	for _, token := range []string{"", TokenPrefix, one.Token + "x", "x" + one.Token[1:],
		one.Token[:len(one.Token)-1]} {
		refused(s, one.ConnectionID, token)
	}
	refused(New(store, nil, time.Now), one.ConnectionID, one.Token)
	if store.asked != asked {
		t.Error("what has not the form of a token was looked up")
	}
	store.disabled = true
	var f *fault.Error
	if _, err := s.Identify(t.Context(), one.ConnectionID, one.Token); !errors.As(err, &f) ||
		f.Code != fault.ServiceUnavailable || f.RetryAfter == 0 {
		t.Errorf("a disabled connection: %v", err)
	}
	refused(s, two.ConnectionID, one.Token)
	store.disabled = false
	store.fail = fault.New(fault.ServiceUnavailable, "")
	if _, err := s.Identify(t.Context(), one.ConnectionID, one.Token); !fault.Is(err,
		fault.ServiceUnavailable) {
		t.Errorf("the store is away: %v", err)
	}
}

func TestTokensAreStoredAsHMACs(t *testing.T) {
	t.Parallel()
	store, pepper := &fakeStore{}, []byte("pepper")
	s := New(store, pepper, time.Now)
	name := "Läden"
	created, err := s.Create(t.Context(), "store", &Profile{Name: &name})
	if err != nil {
		t.Fatal(err)
	}
	rotated, err := s.Rotate(t.Context(), created.ConnectionID)
	if err != nil {
		t.Fatal(err)
	}
	c := store.created[0]
	if c.ID != created.ConnectionID || c.StoreID != created.StoreID || c.ExternalStoreID != "store" ||
		*c.Profile.Name != name ||
		!ident.Valid(ident.Connection, string(c.ID)) || !ident.Valid(ident.Store, string(c.StoreID)) ||
		!ident.Valid(ident.ConnectorToken, string(c.TokenID)) {
		t.Errorf("created %+v, stored %+v", created, c)
	}
	for token, mac := range map[string][sha256.Size]byte{created.Token: c.TokenHMAC, rotated: store.macs[0]} {
		h := hmac.New(sha256.New, pepper)
		h.Write([]byte(token))
		if !hmac.Equal(h.Sum(nil), mac[:]) || !strings.HasPrefix(token, TokenPrefix) ||
			len(token) != len(TokenPrefix)+43 {
			t.Errorf("token %q is stored as %x", token, mac)
		}
	}
	if created.Token == rotated {
		t.Error("a rotated token is the same")
	}
}

func TestWithoutPepperThePrincipalIsOff(t *testing.T) {
	t.Parallel()
	store := &fakeStore{}
	s := New(store, nil, time.Now)
	_, create := s.Create(t.Context(), "store", nil)
	_, rotate := s.Rotate(t.Context(), "con_1")
	for _, err := range []error{create, rotate, s.Enabled()} {
		if !fault.Is(err, fault.PrincipalOff) {
			t.Errorf("got %v", err)
		}
	}
	if len(store.created)+len(store.macs) != 0 {
		t.Error("something was stored")
	}
}

func TestTheStoresFaultsPass(t *testing.T) {
	t.Parallel()
	s := New(&fakeStore{fail: fault.New(fault.StoreConnected, "")}, []byte("pepper"), time.Now)
	if c, err := s.Create(t.Context(), "store", nil); !fault.Is(err, fault.StoreConnected) || c.Token != "" {
		t.Errorf("got %+v, %v", c, err)
	}
	if token, err := s.Rotate(t.Context(), "con_1"); err == nil || token != "" {
		t.Errorf("got %q, %v", token, err)
	}
}
