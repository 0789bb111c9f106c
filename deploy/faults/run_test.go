package main

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"storefront.internal/deploy/local/kafka"
	"storefront.internal/deploy/local/redis"
)

// A run of a minute is part of every test run: short faults of many kinds on a whole deployment. Whatever it finds is about
// correctness: how fast a busy machine recovers is told and never judged.
func TestMinuteOfFaults(t *testing.T) {
	if why := missing(); why != "" {
		if os.Getenv("REQUIRE_REAL") == "1" {
			t.Fatal(why)
		}
		t.Skip("SKIPPED: " + why)
	}
	o := options{minutes: 0.6, seed: uint64(time.Now().UnixNano() % 1_000_000), faults: "N1,N2,N3,N4,N5,N6,N8,N9,N10,N11,N12,N14,N15",
		redis: true, hasty: true, rate: 250, bin: os.Getenv("FAULTS_BIN")}
	r, err := play(t.Context(), o, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	r.Text(t.Output())
	if r.Failed() {
		t.Errorf("%d findings, %d crashes; once more: %s; the folder: %s", len(r.Findings), len(r.Crashes), r.Reproducer, r.Dir)
	}
	if r.Faults < 1 || r.Figures.Accepted < 100 {
		t.Errorf("%d faults and %d accepted signals are no run", r.Faults, r.Figures.Accepted)
	}
}

// missing names what a deployment needs and this machine lacks.
func missing() string {
	if _, found := redis.Find(); !found {
		return "a fault run needs a redis-server on PATH"
	}
	for _, program := range []string{"java", "mvn"} {
		if _, err := exec.LookPath(program); err != nil {
			return "a fault run needs " + program + " for " + kafka.ErrUnavailable.Error()
		}
	}
	return ""
}
