package provider

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"

	"storefront.internal/shared/settings"
)

// HexSignature decodes a signature in hexadecimal digits of either case. It reports false when the text is
// not a SHA-256 in that form.
func HexSignature(signature string) (sum [sha256.Size]byte, ok bool) {
	if len(signature) != hex.EncodedLen(len(sum)) {
		return sum, false
	}
	_, err := hex.Decode(sum[:], []byte(signature))
	return sum, err == nil
}

// Base64Signature decodes a signature in padded standard base64. Only the one canonical text is accepted: the
// length is compared first because the decoder skips line feeds.
func Base64Signature(signature string) (sum [sha256.Size]byte, ok bool) {
	if len(signature) != base64.StdEncoding.EncodedLen(len(sum)) {
		return sum, false
	}
	b, err := base64.StdEncoding.Strict().DecodeString(signature)
	return [sha256.Size]byte(append(b, sum[:]...)[:len(sum)]), err == nil && len(b) == len(sum)
}

// VerifyHMAC reports whether the signature is the HMAC-SHA-256 of the body under one of the secrets. Every
// secret is tried, so it takes equally long for a valid, an invalid and an undecodable signature.
func VerifyHMAC(
	decode func(string) ([sha256.Size]byte, bool), secrets []settings.Secret, signature string, body []byte,
) bool {
	given, decoded := decode(signature)
	found := false
	for _, secret := range secrets {
		mac := hmac.New(sha256.New, []byte(secret.Reveal()))
		mac.Write(body)
		if hmac.Equal(mac.Sum(nil), given[:]) && secret.Reveal() != "" {
			found = true
		}
	}
	return found && decoded
}
