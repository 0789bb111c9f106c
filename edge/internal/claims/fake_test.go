package claims_test

import (
	"testing"
	"time"

	"storefront.internal/edge/internal/claims"
	"storefront.internal/edge/internal/claims/claimstest"
)

// TestFakeConforms runs the suite of the real store over the fake.
func TestFakeConforms(t *testing.T) {
	claimstest.Conformance(t, func(t *testing.T) claimstest.Subject {
		r := claimstest.NewFakeRedis()
		r.FlushAll()
		return claimstest.Subject{
			Store: r.Connect(nil),
			Age: func(t *testing.T, key claims.Key, by time.Duration) {
				if !r.Age(key, by) {
					t.Error("no claim to make older")
				}
			},
			AgeEpoch: func(_ *testing.T, by time.Duration) { r.AgeEpoch(by) },
		}
	})
}
