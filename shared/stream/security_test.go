package stream

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"storefront.internal/shared/settings"
)

func TestSecurityOfSettings(t *testing.T) {
	t.Parallel()
	for sasl, name := range map[string]string{"": "", settings.SASLPlain: "PLAIN",
		settings.SASLScram256: "SCRAM-SHA-256", settings.SASLScram512: "SCRAM-SHA-512"} {
		s, err := NewSecurity(settings.Kafka{KafkaSASL: sasl, KafkaUsername: "u", KafkaPassword: "p"})
		if err != nil || (s.sasl != nil) != (name != "") || s.sasl != nil && s.sasl.Name() != name ||
			s.tls != nil {
			t.Errorf("%q: %+v, %v", sasl, s, err)
		}
	}
	none := filepath.Join(t.TempDir(), "none.pem")
	if err := os.WriteFile(none, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, says := range map[string]string{none: "holds no certificate",
		none + ".missing": "no such file"} {
		if _, err := NewSecurity(settings.Kafka{KafkaTLS: true, KafkaCAFile: file}); err == nil ||
			!strings.Contains(err.Error(), "KAFKA_CA_FILE") || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", file, err)
		}
	}
	// RFC 4013 forbids some characters of a password; the error must not tell it.
	if _, err := NewSecurity(settings.Kafka{KafkaSASL: settings.SASLScram512, KafkaUsername: "u",
		KafkaPassword: "hunter2\u0007"}); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%v", err)
	}
	if s, err := NewSecurity(settings.Kafka{KafkaTLS: true}); err != nil || s.tls == nil ||
		s.tls.InsecureSkipVerify || s.tls.RootCAs != nil {
		t.Errorf("%+v, %v", s, err)
	}
}
