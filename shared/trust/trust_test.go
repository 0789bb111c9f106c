package trust

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// The system's authorities are read once per process, so the test runs itself again, as in the image: no file
// of the system's own, and a folder with one authority of a cluster.
func TestSystemAndPublicAuthorities(t *testing.T) {
	if os.Getenv("TRUST_CHILD") != "" {
		UsePublicRoots()
		pool, err := x509.SystemCertPool()
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(os.Getenv("TRUST_CHILD"))
		if err != nil {
			t.Fatal(err)
		}
		block, _ := pem.Decode(text)
		own, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := own.Verify(x509.VerifyOptions{}); err != nil {
			t.Errorf("the cluster's own: %v", err)
		}
		public := 0
		for root := range bundle.Roots() {
			cert, err := x509.ParseCertificate(root.Certificate)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := cert.Verify(x509.VerifyOptions{CurrentTime: cert.NotBefore.Add(time.Hour),
				KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err == nil {
				public++
			}
		}
		fmt.Printf("public %d, pool %v\n", public, pool != nil)
		return
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "ca.crt")
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "cluster"},
		NotBefore: time.Now().Add(-time.Hour),
		NotAfter:  time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), "TRUST_CHILD="+file, "SSL_CERT_FILE=/nonexistent", "SSL_CERT_DIR="+dir,
		"GODEBUG=x509usefallbackroots=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "public ") || strings.Contains(string(out), "public 0,") {
		t.Errorf("%v\n%s", err, out)
	}
}
