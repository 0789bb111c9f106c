package hooks

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"strings"
)

// Hex signs as Tiendanube does: HMAC-SHA-256 over the raw body in lower-case hexadecimal.
func Hex(secret string, body []byte) string { return hex.EncodeToString(mac(secret, body)) }

// Base64 signs as Shopify and WooCommerce do: the same in standard base64.
func Base64(secret string, body []byte) string {
	return base64.StdEncoding.EncodeToString(mac(secret, body))
}

func mac(secret string, body []byte) []byte {
	m := hmac.New(sha256.New, []byte(secret))
	m.Write(body)
	return m.Sum(nil)
}

// URLFault returns what is wrong with a webhook URL, "" when nothing is. strict is the real providers' rule:
// https and no local host. Otherwise plain HTTP is taken too, so that a local stack can receive.
func URLFault(text string, strict bool, forbidden ...string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
		return "is not a valid URL"
	}
	if !strict {
		return ""
	}
	host := strings.ToLower(u.Hostname())
	if u.Scheme != "https" {
		return "must be https"
	}
	for _, name := range append(forbidden, "localhost", "127.0.0.1", "::1") {
		if strings.Contains(host, name) {
			return "host is not allowed"
		}
	}
	return ""
}
