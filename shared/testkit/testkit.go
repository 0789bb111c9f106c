// Package testkit gives tests real services: each test has its own database cloned from a migrated template,
// its own prefix of Redis keys and its own Kafka topic.
//
// TEST_DATABASE_URL (a superuser), TEST_REDIS_ADDR and TEST_KAFKA_BROKERS name the services. Where a variable
// is missing the test is skipped, or fails when REQUIRE_REAL=1. Only _test.go files import the package.
package testkit

import (
	"crypto/rand"
	"os"
	"strings"
	"testing"
)

// address returns one of the three variables, or ends the test.
func address(t testing.TB, variable string) string {
	t.Helper()
	if v := os.Getenv(variable); v != "" {
		return v
	}
	if os.Getenv("REQUIRE_REAL") == "1" {
		t.Fatalf("%s is not set and REQUIRE_REAL=1 asks for the real service; run the tests with `make "+
			"test`", variable)
	}
	t.Skipf("SKIPPED, NOTHING WAS TESTED: %s is not set; `make test` starts the real services", variable)
	return ""
}

// Name returns a random name of lower-case letters and digits with the prefix, for a topic, a group, a
// database or a key.
func Name(prefix string) string { return prefix + strings.ToLower(rand.Text())[:16] }
