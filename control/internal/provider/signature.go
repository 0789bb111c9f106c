package provider

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"

	"storefront.internal/shared/settings"
)

// Hex decodes a signature in hexadecimal digits of either case; false when it is no SHA-256 in that form.
func Hex(signature string) (sum [sha256.Size]byte, ok bool) {
	if len(signature) != hex.EncodedLen(len(sum)) {
		return sum, false
	}
	_, err := hex.Decode(sum[:], []byte(signature))
	return sum, err == nil
}

// Base64 decodes a signature in padded standard base64, of which there is exactly one text; false for anything else. The
// length is compared first, because the decoder would skip line feeds.
func Base64(signature string) (sum [sha256.Size]byte, ok bool) {
	if len(signature) != base64.StdEncoding.EncodedLen(len(sum)) {
		return sum, false
	}
	b, err := base64.StdEncoding.Strict().DecodeString(signature)
	return [sha256.Size]byte(append(b, sum[:]...)[:len(sum)]), err == nil && len(b) == len(sum)
}

// VerifyHMAC reports whether the signature is the HMAC-SHA-256 of the body under one of the secrets. It takes as long for
// a wrong signature, and for one that does not decode, as for the right one: every secret is tried.
func VerifyHMAC(decode func(string) ([sha256.Size]byte, bool), secrets []settings.Secret, signature string, body []byte) bool {
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
