// Package testkit gives tests real services: a database of their own cloned from a migrated template, a Redis key prefix of their own, a Kafka topic of their own.
//
// The services' addresses come from TEST_DATABASE_URL (a superuser), TEST_REDIS_ADDR and TEST_KAFKA_BROKERS. Where one is missing the test is skipped and says so, or fails when
// REQUIRE_REAL=1. It is for tests only and refuses to be linked into a binary: only _test.go files import it.
package testkit

import (
	"crypto/rand"
	"os"
	"strings"
	"testing"
)

// address reads one of the three variables, or ends the test.
func address(t testing.TB, variable string) string {
	t.Helper()
	if v := os.Getenv(variable); v != "" {
		return v
	}
	if os.Getenv("REQUIRE_REAL") == "1" {
		t.Fatalf("%s is not set and REQUIRE_REAL=1 asks for the real service; run the tests with `make test`", variable)
	}
	t.Skipf("SKIPPED, NOTHING WAS TESTED: %s is not set; `make test` starts the real services", variable)
	return ""
}

// Name is a random name of lower-case letters and digits that begins with the prefix, fit for a topic, a group, a database or a key.
func Name(prefix string) string { return prefix + strings.ToLower(rand.Text())[:16] }
