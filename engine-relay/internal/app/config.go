package app

import (
	"time"

	"storefront.internal/engine-relay/internal/engine"
	"storefront.internal/shared/settings"
)

// Prefix is the prefix of every variable of engine-relay.
const Prefix = "RELAY"

// Config is engine-relay's configuration; CONFIG.md is generated from its tags.
type Config struct {
	settings.Postgres
	settings.Kafka
	settings.Telemetry
	KafkaGroup    string `envconfig:"KAFKA_GROUP" default:"storefront-relay" desc:"consumer group, the same for all relays of a database and not that of another release"`
	AcceptLoss    bool   `envconfig:"KAFKA_ACCEPT_LOSS" default:"false" desc:"continue at the first offset that Kafka has when it lost the next one"`
	SinkWorkers   int    `envconfig:"SINK_WORKERS" default:"2" desc:"concurrent transactions that store signals, 1 to 8"`
	SinkBatch     int    `envconfig:"SINK_BATCH" default:"4000" desc:"most signals of such a transaction, 50 to 20000"`
	PartitionDays int    `envconfig:"PARTITION_DAYS" default:"7" desc:"days for which partitions are created ahead, 2 to 60"`
	RetentionDays int    `envconfig:"RETENTION_DAYS" default:"400" desc:"days after which signals, Decisions and cart lines are dropped, at least 8; 0 keeps them. The ledger, which counts each signal once, is kept"`
	AuditDays     int    `envconfig:"AUDIT_DAYS" default:"90" desc:"days after which the audit of requests (address and headers of the shopper) is dropped, at least 8; 0 keeps it"`

	EngineURL     string          `envconfig:"ENGINE_URL" desc:"base URL of the engine; without it signals are stored and deliveries wait"`
	EngineToken   settings.Secret `envconfig:"ENGINE_TOKEN" desc:"bearer token of the engine; required with the URL"`
	EngineTimeout time.Duration   `envconfig:"ENGINE_TIMEOUT" default:"10s" desc:"timeout of a request to the engine"`
	EngineMixed   bool            `envconfig:"ENGINE_MIXED_REQUESTS" default:"true" desc:"a request may hold deliveries of several connections; false for an engine that accepts one connection per request"`
	DecisionWait  time.Duration   `envconfig:"DECISION_WAIT" default:"30s" desc:"longest wait of an interaction for the engine_ids of its Decision"`
	DeadAfter     time.Duration   `envconfig:"DEAD_AFTER" default:"24h" desc:"shortest time from the first failure to a dead letter; time while blocked does not count"`
	DeadAttempts  int             `envconfig:"DEAD_ATTEMPTS" default:"8" desc:"fewest attempts before a dead letter"`
	BackoffMin    time.Duration   `envconfig:"BACKOFF_MIN" default:"1s" desc:"delay after the first failure of a delivery in a retry lane"`
	BackoffMax    time.Duration   `envconfig:"BACKOFF_MAX" default:"1h" desc:"longest such delay"`
	Lease         time.Duration   `envconfig:"LEASE" default:"1m" desc:"how long a worker leases a lane; raised to twice the engine's timeout plus 5 s"`
	Workers       int             `envconfig:"WORKERS" default:"4" desc:"concurrent requests to the engine, 1 to 64"`
}

// Validate is called by settings.Load.
func (c *Config) Validate() []error {
	var errs []error
	within := func(variable string, v, least, most int) {
		if v < least || v > most {
			errs = append(errs, settings.Errorf(variable, "must be %d to %d", least, most))
		}
	}
	within("SINK_WORKERS", c.SinkWorkers, 1, 8)
	within("SINK_BATCH", c.SinkBatch, 50, 20000)
	within("PARTITION_DAYS", c.PartitionDays, 2, 60)
	within("WORKERS", c.Workers, 1, 64)
	within("DEAD_ATTEMPTS", c.DeadAttempts, 1, 1000)
	for variable, days := range map[string]int{"RETENTION_DAYS": c.RetentionDays, "AUDIT_DAYS": c.AuditDays} {
		if days != 0 {
			within(variable, days, 8, 36500)
		}
	}
	for variable, d := range map[string]time.Duration{"ENGINE_TIMEOUT": c.EngineTimeout,
		"DECISION_WAIT": c.DecisionWait,
		"DEAD_AFTER":    c.DeadAfter, "BACKOFF_MIN": c.BackoffMin, "LEASE": c.Lease} {
		if d <= 0 {
			errs = append(errs, settings.Errorf(variable, "must be more than 0"))
		}
	}
	if c.BackoffMax < c.BackoffMin {
		errs = append(errs, settings.Errorf("BACKOFF_MAX", "must not be below %s_BACKOFF_MIN", Prefix))
	}
	if c.KafkaGroup == "" {
		errs = append(errs, settings.Errorf("KAFKA_GROUP", "must not be empty"))
	}
	return append(errs, c.validateEngine()...)
}

func (c *Config) validateEngine() []error {
	if c.EngineURL == "" {
		return nil
	}
	var errs []error
	if _, err := engine.New(engine.Config{URL: c.EngineURL, Token: c.EngineToken.Reveal()}); err != nil {
		errs = append(errs, settings.Errorf("ENGINE_URL", "%v", err))
	}
	if c.EngineToken == "" {
		errs = append(errs, settings.Errorf("ENGINE_TOKEN", "is required with %s_ENGINE_URL", Prefix))
	}
	return errs
}
