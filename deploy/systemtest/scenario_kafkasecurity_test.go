package systemtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"storefront.internal/deploy/local/kafka"
	"storefront.internal/deploy/local/project"
	"storefront.internal/deploy/local/services"
)

// Edge and relay speak to a broker over TLS of a private CA, by each mechanism of SASL; one with a wrong password records nothing and says
// so, and its log does not hold the password.
func TestKafkaWithTLSAndSASL(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	authority, keystore := certificate(t, dir)
	const user, password = "storefront", "correct-horse"
	libs, err := kafka.Fetch(t.Context(), filepath.Join(shared.project.Cache(), "kafka"))
	unavailable(t, err)
	door := kafka.Door{Name: "SECURE", Port: port(t), Protocol: "SASL_SSL"}
	door.Advertised = project.Loopback(door.Port)
	broker, err := kafka.Start(t.Context(), kafka.Config{
		Libs: libs, Dir: folder(t, dir, "kafka"), Port: port(t), ControllerPort: port(t), Doors: []kafka.Door{door},
		Scram: map[string]string{user: password},
		Properties: []string{
			"ssl.keystore.type=PEM", "ssl.keystore.location=" + keystore,
			"listener.name.secure.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
			`listener.name.secure.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_` + user + `="` + password + `";`,
			"listener.name.secure.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;",
			"listener.name.secure.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;",
		},
	})
	check(t, err)
	t.Cleanup(func() { _ = broker.Close() })
	x := newTopology(t, func(s *services.Settings) { s.KafkaBrokers = broker.Addr() })
	access := func(prefix, mechanism, secret string) []string {
		return []string{prefix + "_KAFKA_BROKERS=" + door.Advertised, prefix + "_KAFKA_TLS=true", prefix + "_KAFKA_CA_FILE=" + authority,
			prefix + "_KAFKA_SASL=" + mechanism, prefix + "_KAFKA_USERNAME=" + user, prefix + "_KAFKA_PASSWORD=" + secret}
	}
	x.relay(access("RELAY", "SCRAM-SHA-512", password)...)
	s := x.newShop()
	var ids []string
	for _, mechanism := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		edge := x.edge(access("EDGE", mechanism, password)...)
		batch := cartBatch(s.recommend(edge), 2)
		s.resend(edge, batch, time.Minute) // the topics may be on their way
		ids = append(ids, idsOf(batch)...)
	}
	x.delivered(t, s, ids, 2*time.Minute)

	wrong := x.edge(access("EDGE", "SCRAM-SHA-512", "wrong-horse")...)
	if a, err := s.send(wrong, cartBatch(s.recommend(wrong), 1), 30*time.Second); err != nil || a.Status != http.StatusServiceUnavailable {
		t.Errorf("with a wrong password: %+v %v", a, err)
	}
	logs, err := filepath.Glob(filepath.Join(shared.logs, x.name+"-*.log"))
	check(t, err)
	for _, log := range logs {
		text, err := os.ReadFile(log)
		check(t, err)
		if strings.Contains(string(text), "-horse") {
			t.Errorf("%s holds a password", log)
		}
	}
}

// certificate makes one for the loopback address that is its own authority: a file with it, and one with its key too.
func certificate(t *testing.T, dir string) (authority, keystore string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kafka"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	check(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	check(t, err)
	public := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	authority, keystore = filepath.Join(dir, "ca.crt"), filepath.Join(dir, "keystore.pem")
	check(t, os.WriteFile(authority, public, 0o600))
	check(t, os.WriteFile(keystore, append(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), public...), 0o600))
	return authority, keystore
}
