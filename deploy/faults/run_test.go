package main

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"storefront.internal/deploy/faults/campaign"
	"storefront.internal/deploy/local/kafka"
	"storefront.internal/deploy/local/redis"
)

// TestShortRun makes a run with short faults of many kinds on a whole deployment. It checks correctness only:
// the time of recovery depends on the machine.
func TestShortRun(t *testing.T) {
	if why := missing(); why != "" {
		if os.Getenv("REQUIRE_REAL") == "1" {
			t.Fatal(why)
		}
		t.Skip("SKIPPED: " + why)
	}
	o := options{minutes: 0.6, shops: campaign.UsualConnections,
		seed:   uint64(time.Now().UnixNano() % 1_000_000),
		faults: "N1,N2,N3,N4,N5,N6,N8,N9,N10,N11,N12,N14,N15,N16",
		redis:  true, short: true, brokers: 1, rate: 250, bin: os.Getenv("FAULTS_BIN")}
	e, err := newEnvironment()
	if err != nil {
		t.Fatal(err)
	}
	r, err := runCampaign(t.Context(), o, e)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Markdown(t.Output()); err != nil {
		t.Error(err)
	}
	if r.Failed() {
		t.Errorf("%d findings, %d crashes; repeat: %s; folder: %s", len(r.Findings), len(r.Crashes),
			r.Reproducer, r.Dir)
	}
	if r.Faults < 1 || r.Figures.Accepted < 100 {
		t.Errorf("too little was tested: %d faults, %d accepted signals", r.Faults, r.Figures.Accepted)
	}
}

// missing returns what a deployment needs and this machine does not have.
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
