// Package seal owns secrets at rest: it seals them with Tink's AEAD (AES-256-GCM) under a keyset of the
// configuration, bound to the place where they are stored, so that a ciphertext that was moved to another row, column
// or connection does not open. It refuses to store anything, and its errors never say what was sealed.
//
// A ciphertext starts with the id of the key that sealed it: a keyset may hold older keys beside the primary one.
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

// Place is where a secret is stored. No part may hold the separator.
type Place struct {
	Table, Column, Row, Connection string
}

// version and separator are of the associated data's form.
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

// Parse reads a cleartext keyset in Tink's JSON form. Only keys whose ciphertexts carry their id are taken.
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

// NewKeyset returns a fresh keyset of one AES-256-GCM key, as JSON in cleartext.
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

// Seal returns the ciphertext of a secret for the place where it will be stored.
func (s *Sealer) Seal(secret []byte, at Place) ([]byte, error) {
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

// Open returns the secret of a ciphertext that was found at the place.
func (s *Sealer) Open(sealed []byte, at Place) ([]byte, error) {
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

// Header is what ciphertexts begin with that Seal makes.
func (s *Sealer) Header() []byte {
	return binary.BigEndian.AppendUint32([]byte{1}, s.primary)
}

// CheckHeader reports whether a ciphertext with this header was sealed by an enabled key of the keyset. A service asks
// at its start for every header that is stored, and does not start without a key that it will need.
func (s *Sealer) CheckHeader(header []byte) error {
	if len(header) != HeaderLen || header[0] != 1 {
		return errors.New("seal: a ciphertext is not of this service's form")
	}
	id := uint32(header[1])<<24 | uint32(header[2])<<16 | uint32(header[3])<<8 | uint32(header[4])
	if !slices.Contains(s.keyIDs, id) {
		return fmt.Errorf("seal: ciphertexts are stored that need key %d, which the keyset has not got", id)
	}
	return nil
}

func (p Place) associatedData() ([]byte, error) {
	parts := []string{version, p.Table, p.Column, p.Row, p.Connection}
	for _, part := range parts {
		if part == "" || strings.Contains(part, separator) {
			return nil, errors.New("seal: a place needs all its parts, without a separator in them")
		}
	}
	return []byte(strings.Join(parts, separator)), nil
}
