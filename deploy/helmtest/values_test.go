//go:build helm

package helmtest

import (
	"path/filepath"
	"strings"
	"testing"
)

// Values that are misspelt, of a wrong type or out of range are refused by the schema before anything is rendered, and those
// that contradict one another are refused by the templates; the refusal names what is wrong.
func TestBadValuesAreRefused(t *testing.T) {
	t.Parallel()
	minimal := filepath.Join(root(t), "helm/storefront/ci/minimal-values.yaml")
	for set, says := range map[string]string{
		// misspelt
		"replicaCount=3":                              "'replicaCount' not allowed",
		"edge.replicas=3":                             "'replicas' not allowed",
		"edge.autoscaling.minReplica=3":               "'minReplica' not allowed",
		"edge.config.EDGE_LOG_LEVELL=DEBUG":           "EDGE_LOG_LEVELL",
		"edge.config.CONTROL_LOG_LEVEL=DEBUG":         "CONTROL_LOG_LEVEL",
		"edge.config.EDGE_LISTEN=:1":                  "EDGE_LISTEN",
		"edge.config.EDGE_DECISION_KEYS=k1:x":         "EDGE_DECISION_KEYS",
		"control.config.CONTROL_CONNECTOR_PEPPER=x":   "CONTROL_CONNECTOR_PEPPER",
		"relay.service.port=80":                       "'port' not allowed",
		"relay.shutdown.drainDelaySeconds=1":          "'drainDelaySeconds' not allowed",
		"postgresql.edge.password=x":                  "'password' not allowed",
		"secrets.decisionKey.key=x":                   "'decisionKey' not allowed",
		"monitoring.serviceMonitor.intervall=30s":     "'intervall' not allowed",
		"ingress.host=a.example":                      "'host' not allowed",
		"edge.extraEnv[0].name=EDGE_LOG_LEVEL":        "extraEnv/0/name",
		"edge.extraEnv[0].name=A,edge.extraEnv[0].x=": "'x' not allowed",
		// of a wrong type
		"edge.replicaCount=many":                                 "/edge/replicaCount",
		"edge.config.EDGE_BEACON=true":                           "/edge/config/EDGE_BEACON",
		"redis.addrs=redis:6379":                                 "/redis/addrs",
		"redis.tls=yes-please":                                   "/redis/tls",
		"kafka.brokers[0]=kafka":                                 "/kafka/brokers/0",
		"kafka.brokers[0]=http://kafka:9092":                     "/kafka/brokers/0",
		"errorsBase=https://errors.example.com":                  "/errorsBase",
		"errorsBase=errors/":                                     "/errorsBase",
		"engine.url=engine:8000":                                 "/engine/url",
		"postgresql.host=postgres://h":                           "/postgresql/host",
		"edge.image.digest=latest":                               "/edge/image/digest",
		"edge.image.pullPolicy=Sometimes":                        "/edge/image/pullPolicy",
		"edge.resources.limits.memory=lots":                      "/edge/resources/limits/memory",
		"tests.connectionId=trial":                               "/tests/connectionId",
		"monitoring.serviceMonitor.interval=often":               "/monitoring/serviceMonitor/interval",
		"monitoring.prometheusRule.runbookUrl=runbooks":          "/monitoring/prometheusRule/runbookUrl",
		"tracing.endpoint=collector:4318":                        "/tracing/endpoint",
		"tracing.endpoint=http://user:pw@collector:4318":         "/tracing/endpoint",
		"tracing.ratio=2":                                        "/tracing/ratio",
		"edge.config.EDGE_TRACE_RATIO=1":                         "EDGE_TRACE_RATIO",
		"edge.pdb.maxUnavailable=half":                           "/edge/pdb/maxUnavailable",
		"relay.keda.minReplicaCount=0":                           "/relay/keda/minReplicaCount",
		"kafka.sasl.mechanism=GSSAPI":                            "/kafka/sasl/mechanism",
		"kafka.sasl.password=x":                                  "'password' not allowed",
		"kafka.sasl.mechanism=PLAIN":                             "kafka.sasl: a mechanism needs a username",
		"kafka.sasl.username=u":                                  "and a username a mechanism",
		"kafka.sasl.mechanism=PLAIN,kafka.sasl.username=u":       "kafka.sasl is required: name an existing Secret",
		"relay.config.RELAY_KAFKA_SASL=PLAIN":                    "RELAY_KAFKA_SASL",
		"kafka.replicationFactor=0":                              "/kafka/replicationFactor",
		"kafka.topicPartitions=0":                                "/kafka/topicPartitions",
		"migrations.mode=initContainer":                          "/migrations/mode",
		"postgresql.sslMode=maybe":                               "/postgresql/sslMode",
		"networkPolicy.egress.redis.ports[0]=70000":              "/networkPolicy/egress/redis/ports/0",
		"ingress.hosts[0]=https://a.example":                     "/ingress/hosts/0",
		"global.imagePullSecrets[0]=mirror":                      "/global/imagePullSecrets/0",
		"secrets.existingSecret=Not_A_Name":                      "/secrets/existingSecret",
		"podSecurityContext=restricted":                          "/podSecurityContext",
		"edge.topologySpreadConstraints[0].topologyKey=zone":     "/edge/topologySpreadConstraints/0",
		"edge.config.EDGE_RATE_PER_KEY=8000":                     "/edge/config/EDGE_RATE_PER_KEY",
		"control.webhookUrl=https://hooks.example.com/?provider": "/control/webhookUrl",
		// contradictions
		"errorsBase=":                  "errorsBase is required",
		"postgresql.host=":             "postgresql.host is required",
		"postgresql.existingSecret=":   ": name an existingSecret with the password",
		"secrets.existingSecret=":      "is required: name an existing Secret",
		"redis.addrs=null":             "redis.addrs is required",
		"kafka.brokers=null":           "kafka.brokers is required",
		"engine.url=https://e.example": "engine is required",
		"secrets.keyset.existingSecret=a,secrets.keyset.key=":                                      "secrets.keyset names an existingSecret and no key",
		"secrets.appSecrets.key=apps":                                                              "control.webhookUrl is required",
		"edge.shutdown.terminationGracePeriodSeconds=34":                                           "edge.shutdown.terminationGracePeriodSeconds is 34 and must be at least 35",
		"edge.shutdown.preStopSleepSeconds=21":                                                     "must be at least 46",
		"edge.shutdown.drainDelaySeconds=14":                                                       "must be at least 46",
		"control.shutdown.terminationGracePeriodSeconds=41":                                        "must be at least 42",
		"relay.shutdown.terminationGracePeriodSeconds=30":                                          "must be at least 32",
		"relay.autoscaling.enabled=true,relay.keda.enabled=true":                                   "exclude each other",
		"edge.autoscaling.enabled=true,edge.autoscaling.minReplicas=11":                            "minReplicas is greater than maxReplicas",
		"relay.keda.enabled=true,relay.keda.minReplicaCount=9":                                     "minReplicaCount is greater than maxReplicaCount",
		"ingress.enabled=true":                                                                     "ingress.hosts is required",
		"control.ingress.enabled=true":                                                             "control.ingress.hosts is required",
		"gateway.enabled=true":                                                                     "gateway.parentRefs is required",
		"caBundle.existingSecret=a,caBundle.existingConfigMap=b":                                   "not both",
		"migrations.ttlSecondsAfterFinished=60":                                                    "is for mode job",
		"tests.connectionId=con_1":                                                                 "tests.existingSecret is required",
		"postgresql.edge.urlKey=uri,postgresql.existingSecret=,postgresql.migrations.passwordKey=": "postgresql.edge.urlKey needs an existingSecret",
		"edge.autoscaling.enabled=true,edge.autoscaling.maxReplicas=0":                             "/edge/autoscaling/maxReplicas",
		"auth.create=true,secrets.existingSecret=,postgresql.host=pg.test":                         "is required: name an existing Secret",
	} {
		out, problems, err := helm(t, "template", "sf", "helm/storefront", "--kube-version", kubeVersion, "-f", minimal, "--set", set)
		if err == nil {
			t.Errorf("--set %s was taken:\n%.200s", set, out)
		} else if !strings.Contains(problems, says) {
			t.Errorf("--set %s: want %q in\n%s", set, says, problems)
		}
	}
}

// Objects of CRDs are refused on a cluster that does not serve them, and made where nobody can tell.
func TestMissingCRDIsNamed(t *testing.T) {
	t.Parallel()
	full := filepath.Join(root(t), "helm/storefront/ci/full-values.yaml")
	crds := []string{"monitoring.coreos.com/v1/ServiceMonitor", "monitoring.coreos.com/v1/PrometheusRule", "keda.sh/v1alpha1/ScaledObject", "gateway.networking.k8s.io/v1/HTTPRoute"}
	for _, missing := range crds {
		args := []string{"template", "sf", "helm/storefront", "--kube-version", kubeVersion, "-f", full, "--api-versions", "apps/v1/Deployment"}
		for _, crd := range crds {
			if crd != missing {
				args = append(args, "--api-versions", crd)
			}
		}
		if _, problems, err := helm(t, args...); err == nil || !strings.Contains(problems, missing) {
			t.Errorf("without %s: %v %s", missing, err, problems)
		}
	}
}
