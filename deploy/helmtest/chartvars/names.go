package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// component is a service.
type component struct {
	definition string   // in the schema
	reference  string   // CONFIG.md of the service
	prefix     string   // of its variables
	set        []string // names without prefix that values must not set
}

func components() []component {
	redis := []string{"REDIS_ADDRS", "REDIS_USERNAME", "REDIS_TLS", "REDIS_PREFIX", "REDIS_CLUSTER"}
	tls := []string{"TLS_CERT_FILE", "TLS_KEY_FILE"}
	traces := []string{"TRACE_ENDPOINT", "TRACE_RATIO"}
	kafka := []string{"KAFKA_BROKERS", "KAFKA_SIGNALS_TOPIC", "KAFKA_DECISIONS_TOPIC",
		"KAFKA_TOPIC_PARTITIONS", "KAFKA_REPLICATION_FACTOR", "KAFKA_TLS", "KAFKA_SASL", "KAFKA_USERNAME"}
	return []component{
		{"edgeConfig", "edge/CONFIG.md", "EDGE_", slices.Concat(redis, kafka, traces, tls,
			[]string{"LISTEN", "ADMIN_LISTEN", "ERRORS_BASE", "REPLICAS", "ENGINE_URL", "DRAIN_DELAY"})},
		{"controlConfig", "control/CONFIG.md", "CONTROL_",
			slices.Concat(redis, traces, tls, []string{"LISTEN", "ADMIN_LISTEN", "ERRORS_BASE", "WEBHOOK_URL",
				"KEYSET_FILE"})},
		{"receiverConfig", "control/CONFIG.md", "RECEIVER_", slices.Concat(tls,
			[]string{"LISTEN", "ADMIN_LISTEN", "CONTROL_URL", "PATH"})},
		{"relayConfig", "engine-relay/CONFIG.md", "RELAY_",
			slices.Concat(kafka, traces, []string{"ADMIN_LISTEN", "KAFKA_GROUP", "ENGINE_URL"})},
	}
}

// names returns the settings that values may set, in the order of the reference.
func (c component) names(root string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(root, c.reference))
	if err != nil {
		return nil, err
	}
	row := regexp.MustCompile("(?m)^\\| `(" + c.prefix + "[A-Z0-9_]+)` \\| ([^|]+) \\|")
	var names []string
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		if m[2] != "secret" && !slices.Contains(c.set, strings.TrimPrefix(m[1], c.prefix)) {
			names = append(names, m[1])
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s has no table of settings", c.reference)
	}
	return names, nil
}

// enumerate replaces the names in the enumeration of a definition.
func enumerate(schema []byte, definition string, names []string) ([]byte, error) {
	enumeration := regexp.MustCompile(`(?s)("` + definition +
		`": \{\s*"type": "object",\s*"propertyNames": \{"enum": )\[[^]]*\]`)
	if found := enumeration.FindAllIndex(schema, -1); len(found) != 1 {
		return nil, fmt.Errorf("the schema enumerates %s in %d places, want 1", definition, len(found))
	}
	var list bytes.Buffer
	for i, name := range names {
		text, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			list.WriteString(",")
		}
		fmt.Fprintf(&list, "\n        %s", text)
	}
	return enumeration.ReplaceAllFunc(schema, func(found []byte) []byte {
		head := enumeration.FindSubmatch(found)[1]
		return slices.Concat(head, []byte("["), list.Bytes(), []byte("\n      ]"))
	}), nil
}
