package seal

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
)

// A rotation has three steps, each a keyset that every process must have before the next step: Add, so that
// all can open what the new key seals; Promote, so that the new key seals and older ciphertexts are sealed
// again; Retire.

// Add returns the keyset with a new key beside the primary one.
func Add(keysetJSON []byte) ([]byte, error) {
	return change(keysetJSON, func(m *keyset.Manager, _ *keyset.Handle) error {
		_, err := m.Add(aead.AES256GCMKeyTemplate())
		return err
	})
}

// Promote returns the keyset with its newest key as the primary one.
func Promote(keysetJSON []byte) ([]byte, error) {
	return change(keysetJSON, func(m *keyset.Manager, h *keyset.Handle) error {
		keys := h.KeysetInfo().GetKeyInfo()
		return m.SetPrimary(keys[len(keys)-1].GetKeyId())
	})
}

// Retire returns the keyset with its primary key alone. Ciphertexts of other keys cannot be opened any more.
func Retire(keysetJSON []byte) ([]byte, error) {
	return change(keysetJSON, func(m *keyset.Manager, h *keyset.Handle) error {
		for _, info := range h.KeysetInfo().GetKeyInfo() {
			if info.GetKeyId() == h.KeysetInfo().GetPrimaryKeyId() {
				continue
			}
			if err := m.Delete(info.GetKeyId()); err != nil {
				return err
			}
		}
		return nil
	})
}

func change(keysetJSON []byte, do func(*keyset.Manager, *keyset.Handle) error) ([]byte, error) {
	if _, err := Parse(keysetJSON); err != nil {
		return nil, err
	}
	handle, err := insecurecleartextkeyset.Read(keyset.NewJSONReader(bytes.NewReader(keysetJSON)))
	if err != nil {
		return nil, errors.New("seal: the keyset is no Tink keyset in JSON") // the cause may quote the keyset
	}
	m := keyset.NewManagerFromHandle(handle)
	if err := do(m, handle); err != nil {
		return nil, fmt.Errorf("seal: change keyset: %w", err)
	}
	changed, err := m.Handle()
	if err != nil {
		return nil, fmt.Errorf("seal: change keyset: %w", err)
	}
	var out bytes.Buffer
	if err := insecurecleartextkeyset.Write(changed, keyset.NewJSONWriter(&out)); err != nil {
		return nil, fmt.Errorf("seal: write keyset: %w", err)
	}
	return out.Bytes(), nil
}
