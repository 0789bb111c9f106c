package stream

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"

	"storefront.internal/shared/settings"
)

// Security is the TLS and SASL configuration of connections to brokers. The zero value uses neither.
type Security struct {
	tls  *tls.Config
	sasl sasl.Mechanism
}

// NewSecurity builds the configuration that the settings describe. Its error never contains the password.
func NewSecurity(s settings.Kafka) (Security, error) {
	var out Security
	if s.KafkaTLS {
		out.tls = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if s.KafkaCAFile != "" {
		pool, err := authorities(s.KafkaCAFile)
		if err != nil {
			return Security{}, fmt.Errorf("KAFKA_CA_FILE: %w", err)
		}
		out.tls.RootCAs = pool
	}
	var err error
	switch s.KafkaSASL {
	case "":
	case settings.SASLPlain:
		out.sasl = plain.Mechanism{Username: s.KafkaUsername, Password: s.KafkaPassword.Reveal()}
	case settings.SASLScram256:
		out.sasl, err = scram.Mechanism(scram.SHA256, s.KafkaUsername, s.KafkaPassword.Reveal())
	case settings.SASLScram512:
		out.sasl, err = scram.Mechanism(scram.SHA512, s.KafkaUsername, s.KafkaPassword.Reveal())
	default:
		err = errors.New("unknown mechanism")
	}
	if err != nil { // the library's error may quote its input
		return Security{}, errors.New("KAFKA_USERNAME or KAFKA_PASSWORD: not fit for " + s.KafkaSASL)
	}
	return out, nil
}

// authorities returns the certificate authorities of the system and those of the file.
func authorities(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		return nil, err
	}
	if !pool.AppendCertsFromPEM(text) {
		return nil, errors.New("holds no certificate")
	}
	return pool, nil
}
