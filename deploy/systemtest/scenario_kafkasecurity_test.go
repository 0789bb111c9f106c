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
	"storefront.internal/deploy/stack"
)

// Edge and relay reach a broker over TLS with a private CA, by each SASL mechanism. With a wrong password an
// edge answers 503, and no log contains a password.
func TestKafkaWithTLSAndSASL(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	authority, keystore := certificate(t, dir)
	const user, password = "storefront", "correct-horse"
	const jaas, module = "listener.name.secure.", "org.apache.kafka.common.security."
	libs, err := kafka.Fetch(t.Context(), filepath.Join(shared.project.Cache(), "kafka"))
	unavailable(t, err)
	checkedEngine := kafka.Listener{Name: "SECURE", Port: port(t), Protocol: "SASL_SSL"}
	checkedEngine.Advertised = project.Loopback(checkedEngine.Port)
	broker, err := kafka.Start(t.Context(), kafka.Config{
		Libs: libs, Dir: folder(t, dir, "kafka"), Port: port(t), ControllerPort: port(t),
		Listeners: []kafka.Listener{checkedEngine},
		Scram:     map[string]string{user: password},
		Properties: []string{
			"ssl.keystore.type=PEM", "ssl.keystore.location=" + keystore,
			"listener.name.secure.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
			jaas + `plain.sasl.jaas.config=` + module + `plain.PlainLoginModule required user_` +
				user + `="` + password + `";`,
			jaas + "scram-sha-256.sasl.jaas.config=" + module + "scram.ScramLoginModule required;",
			jaas + "scram-sha-512.sasl.jaas.config=" + module + "scram.ScramLoginModule required;",
		},
	})
	check(t, err)
	t.Cleanup(func() { _ = broker.Close() })
	x := newDeployment(t, func(s *stack.Settings) { s.KafkaBrokers = broker.Addr() })
	access := func(prefix, mechanism, secret string) []string {
		return []string{prefix + "_KAFKA_BROKERS=" + checkedEngine.Advertised, prefix + "_KAFKA_TLS=true",
			prefix + "_KAFKA_CA_FILE=" + authority,
			prefix + "_KAFKA_SASL=" + mechanism, prefix + "_KAFKA_USERNAME=" + user,
			prefix + "_KAFKA_PASSWORD=" + secret}
	}
	x.relay(access("RELAY", "SCRAM-SHA-512", password)...)
	s := x.newStorefront()
	var ids []string
	for _, mechanism := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		edge := x.edge(access("EDGE", mechanism, password)...)
		batch := cartBatch(s.recommend(edge), 2)
		s.resend(edge, batch, time.Minute) // the topics may be on their way
		ids = append(ids, idsOf(batch)...)
	}
	x.awaitDelivered(t, s, ids, 2*time.Minute)

	wrong := x.edge(access("EDGE", "SCRAM-SHA-512", "wrong-horse")...)
	if a, err := s.send(wrong, cartBatch(s.recommend(wrong), 1), 30*time.Second); err != nil ||
		a.Status != http.StatusServiceUnavailable {
		t.Errorf("with a wrong password: %+v %v", a, err)
	}
	logs, err := filepath.Glob(filepath.Join(x.LogDir, "*.log"))
	check(t, err)
	for _, log := range logs {
		text, err := os.ReadFile(log)
		check(t, err)
		if strings.Contains(string(text), "-horse") {
			t.Errorf("%s holds a password", log)
		}
	}
}

// certificate makes a self-signed certificate for the loopback address: a file with the certificate, and one
// with its key too.
func certificate(t *testing.T, dir string) (authority, keystore string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kafka"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	check(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	check(t, err)
	public := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	authority, keystore = filepath.Join(dir, "ca.crt"), filepath.Join(dir, "keystore.pem")
	check(t, os.WriteFile(authority, public, 0o600))
	check(t, os.WriteFile(keystore,
		append(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), public...), 0o600))
	return authority, keystore
}
