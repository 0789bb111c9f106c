// Package seal owns secrets at rest: it seals them with Tink's AEAD (AES-256-GCM) under a keyset of the
// configuration. A ciphertext is bound to its row, column and connection, so it does not open after it was
// moved. Its header names the key that sealed it: a keyset may hold older keys beside the primary one. The
// Resealer seals with the primary key what an older key sealed, so that the older key can be retired. Errors
// never tell what was sealed.
package seal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
	tinkpb "github.com/tink-crypto/tink-go/v2/proto/tink_go_proto"
	"github.com/tink-crypto/tink-go/v2/tink"
)

// HeaderLen is the length of a ciphertext's header: a version byte and the id of the key that sealed it.
const HeaderLen = 5

// Binding is where a secret is stored; it is the associated data of the ciphertext. No part may contain the
// separator.
type Binding struct {
	Table, Column, Row, Connection string
}

// version and separator give the associated data its form.
const (
	version   = "v1"
	separator = "|"
)

// Sealer seals with the primary key of its keyset and opens with every key.
type Sealer struct {
	aead    tink.AEAD
	keyIDs  []uint32
	primary uint32
}

// Parse reads a cleartext keyset in Tink's JSON form. It accepts only keys whose ciphertexts contain the key
// id.
func Parse(keysetJSON []byte) (*Sealer, error) {
	handle, err := insecurecleartextkeyset.Read(keyset.NewJSONReader(bytes.NewReader(keysetJSON)))
	if err != nil {
		return nil, errors.New("seal: the keyset is no Tink keyset in JSON") // the cause may quote the keyset
	}
	primitive, err := aead.New(handle)
	if err != nil {
		return nil, errors.New("seal: the keyset holds keys that are not of an AEAD")
	}
	s := &Sealer{aead: primitive, primary: handle.KeysetInfo().GetPrimaryKeyId()}
	for _, info := range handle.KeysetInfo().GetKeyInfo() {
		if info.GetOutputPrefixType() != tinkpb.OutputPrefixType_TINK {
			return nil, fmt.Errorf("seal: key %d of the keyset has no id in its ciphertexts", info.GetKeyId())
		}
		if info.GetStatus() == tinkpb.KeyStatusType_ENABLED {
			s.keyIDs = append(s.keyIDs, info.GetKeyId())
		}
	}
	return s, nil
}

// NewKeyset returns a new keyset with one AES-256-GCM key, as JSON in cleartext.
func NewKeyset() ([]byte, error) {
	handle, err := keyset.NewHandle(aead.AES256GCMKeyTemplate())
	if err != nil {
		return nil, fmt.Errorf("seal: new keyset: %w", err)
	}
	var out bytes.Buffer
	if err := insecurecleartextkeyset.Write(handle, keyset.NewJSONWriter(&out)); err != nil {
		return nil, fmt.Errorf("seal: write keyset: %w", err)
	}
	return out.Bytes(), nil
}

// Seal returns the ciphertext of a secret for its binding.
func (s *Sealer) Seal(secret []byte, at Binding) ([]byte, error) {
	data, err := at.associatedData()
	if err != nil {
		return nil, err
	}
	sealed, err := s.aead.Encrypt(secret, data)
	if err != nil {
		return nil, fmt.Errorf("seal: %s.%s does not seal", at.Table, at.Column)
	}
	return sealed, nil
}

// Open returns the secret of a ciphertext that is stored at the binding.
func (s *Sealer) Open(sealed []byte, at Binding) ([]byte, error) {
	data, err := at.associatedData()
	if err != nil {
		return nil, err
	}
	secret, err := s.aead.Decrypt(sealed, data)
	if err != nil {
		return nil, fmt.Errorf("seal: %s.%s of row %s does not open", at.Table, at.Column, at.Row)
	}
	return secret, nil
}

// Header is the header of the ciphertexts that Seal returns.
func (s *Sealer) Header() []byte {
	return binary.BigEndian.AppendUint32([]byte{1}, s.primary)
}

// CheckHeader returns an error unless an enabled key of the keyset sealed the ciphertext with this header. A
// service checks every stored header at its start, and does not start without a key that it will need.
func (s *Sealer) CheckHeader(header []byte) error {
	if len(header) != HeaderLen || header[0] != 1 {
		return errors.New("seal: a ciphertext does not have the form of this service")
	}
	id := uint32(header[1])<<24 | uint32(header[2])<<16 | uint32(header[3])<<8 | uint32(header[4])
	if !slices.Contains(s.keyIDs, id) {
		return fmt.Errorf("seal: stored ciphertexts need key %d, which is not in the keyset", id)
	}
	return nil
}

func (p Binding) associatedData() ([]byte, error) {
	parts := []string{version, p.Table, p.Column, p.Row, p.Connection}
	for _, part := range parts {
		if part == "" || strings.Contains(part, separator) {
			return nil, errors.New("seal: a binding needs all of its parts, without a separator in them")
		}
	}
	return []byte(strings.Join(parts, separator)), nil
}
