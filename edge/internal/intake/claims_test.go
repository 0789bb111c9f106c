package intake_test

import (
	"testing"
	"time"

	"storefront.internal/edge/internal/intake"
	"storefront.internal/edge/internal/intake/claimstest"
)

// TestMemoryConforms runs the suite of the real Claims over the fake.
func TestMemoryConforms(t *testing.T) {
	claimstest.Conformance(t, func(t *testing.T) claimstest.Subject {
		m := claimstest.NewMemory()
		m.Forget()
		return claimstest.Subject{
			Claims: m.Connect(nil),
			Age: func(t *testing.T, key intake.ClaimKey, by time.Duration) {
				if !m.Age(key, by) {
					t.Error("no claim to make older")
				}
			},
			AgeEpoch: func(_ *testing.T, by time.Duration) { m.AgeEpoch(by) },
		}
	})
}
