package app

import (
	"time"

	"storefront.internal/engine-relay/internal/engine"
	"storefront.internal/shared/settings"
	"storefront.internal/shared/stream"
)

// Prefix starts every variable of engine-relay.
const Prefix = "RELAY"

// Config is engine-relay's configuration; CONFIG.md is made from its tags.
type Config struct {
	settings.Postgres
	settings.Kafka
	settings.Telemetry
	KafkaGroup    string `envconfig:"KAFKA_GROUP" default:"storefront-relay" desc:"consumer group; every relay of one database has the same"`
	AcceptLoss    bool   `envconfig:"KAFKA_ACCEPT_LOSS" default:"false" desc:"an operator's word: where Kafka lost the next offset, go on at the first one there is"`
	SinkWorkers   int    `envconfig:"SINK_WORKERS" default:"2" desc:"transactions that store signals at a time, 1 to 8"`
	SinkBatch     int    `envconfig:"SINK_BATCH" default:"4000" desc:"most signals of such a transaction under load, 50 to 20000"`
	PartitionDays int    `envconfig:"PARTITION_DAYS" default:"7" desc:"days ahead whose partitions are kept ready, 2 to 60"`
	RetentionDays int    `envconfig:"RETENTION_DAYS" default:"0" desc:"days after which signals, audit and Decisions are dropped, at least 8; 0 keeps them"`

	EngineURL     string          `envconfig:"ENGINE_URL" desc:"the engine's base URL; empty: the relay stores, and what is to be delivered waits"`
	EngineToken   settings.Secret `envconfig:"ENGINE_TOKEN" desc:"bearer token at the engine; required with the URL"`
	EngineTimeout time.Duration   `envconfig:"ENGINE_TIMEOUT" default:"10s" desc:"longest a request to the engine may take"`
	DecisionWait  time.Duration   `envconfig:"DECISION_WAIT" default:"30s" desc:"longest an interaction waits for its Decision's engine_ids"`
	DeadAfter     time.Duration   `envconfig:"DEAD_AFTER" default:"24h" desc:"a delivery dies no sooner after its first failure, time in blocked not counted"`
	DeadAttempts  int             `envconfig:"DEAD_ATTEMPTS" default:"8" desc:"a delivery dies after no fewer attempts"`
	BackoffMin    time.Duration   `envconfig:"BACKOFF_MIN" default:"1s" desc:"pause after the first failure of a delivery that is tried alone"`
	BackoffMax    time.Duration   `envconfig:"BACKOFF_MAX" default:"1h" desc:"longest such pause"`
	Lease         time.Duration   `envconfig:"LEASE" default:"1m" desc:"how long a lane is a worker's; never below twice the engine's timeout and 5 s"`
	Workers       int             `envconfig:"WORKERS" default:"4" desc:"requests to the engine at a time, 1 to 64"`

	// Topics are the contract's with edge; only tests have their own.
	SignalsTopic   string `ignored:"true"`
	DecisionsTopic string `ignored:"true"`
}

// Validate implements the check that settings.Load calls.
func (c *Config) Validate() []error {
	var faults []error
	within := func(variable string, v, least, most int) {
		if v < least || v > most {
			faults = append(faults, settings.Faultf(variable, "must be %d to %d", least, most))
		}
	}
	within("SINK_WORKERS", c.SinkWorkers, 1, 8)
	within("SINK_BATCH", c.SinkBatch, 50, 20000)
	within("PARTITION_DAYS", c.PartitionDays, 2, 60)
	within("WORKERS", c.Workers, 1, 64)
	within("DEAD_ATTEMPTS", c.DeadAttempts, 1, 1000)
	if c.RetentionDays != 0 {
		within("RETENTION_DAYS", c.RetentionDays, 8, 36500)
	}
	for variable, d := range map[string]time.Duration{"ENGINE_TIMEOUT": c.EngineTimeout, "DECISION_WAIT": c.DecisionWait,
		"DEAD_AFTER": c.DeadAfter, "BACKOFF_MIN": c.BackoffMin, "LEASE": c.Lease} {
		if d <= 0 {
			faults = append(faults, settings.Faultf(variable, "must be more than 0"))
		}
	}
	if c.BackoffMax < c.BackoffMin {
		faults = append(faults, settings.Faultf("BACKOFF_MAX", "must not be below %s_BACKOFF_MIN", Prefix))
	}
	if c.KafkaGroup == "" {
		faults = append(faults, settings.Faultf("KAFKA_GROUP", "must not be empty"))
	}
	return append(faults, c.engineFaults()...)
}

func (c *Config) engineFaults() []error {
	if c.EngineURL == "" {
		return nil
	}
	var faults []error
	if _, err := engine.New(engine.Config{URL: c.EngineURL, Token: c.EngineToken.Reveal()}); err != nil {
		faults = append(faults, settings.Faultf("ENGINE_URL", "%v", err))
	}
	if c.EngineToken == "" {
		faults = append(faults, settings.Faultf("ENGINE_TOKEN", "is required with %s_ENGINE_URL", Prefix))
	}
	return faults
}

func (c *Config) topics() (signals, decisions string) {
	signals, decisions = stream.TopicSignals, stream.TopicDecisions
	if c.SignalsTopic != "" {
		signals = c.SignalsTopic
	}
	if c.DecisionsTopic != "" {
		decisions = c.DecisionsTopic
	}
	return signals, decisions
}
