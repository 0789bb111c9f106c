{{/* The settings of each component that are not secret, for its ConfigMap. */}}

{{/* dict root, name, values */}}
{{- define "storefront.config" -}}
{{- $v := .root.Values -}}
{{- $prefix := include "storefront.prefix" .name -}}
{{- $config := dict -}}
{{- if eq .name "receiver" -}}
{{- $_ := set $config "RECEIVER_LISTEN" ":8080" -}}
{{- $_ := set $config "RECEIVER_CONTROL_URL" (printf "%s://%s-control.%s.svc:%d" (include "storefront.scheme" $v.control) (include "storefront.fullname" .root) .root.Release.Namespace (int $v.control.service.port)) -}}
{{- $_ := set $config "RECEIVER_PATH" (include "storefront.webhookPath" .root) -}}
{{- else -}}
{{- include "storefront.storeConfig" (dict "root" .root "name" .name "values" .values "prefix" $prefix "config" $config) -}}
{{- end -}}
{{- $_ := set $config (printf "%s_ADMIN_LISTEN" $prefix) ":9090" -}}
{{- with .values.tls -}}
{{- if .existingSecret -}}
{{- $_ := set $config (printf "%s_TLS_CERT_FILE" $prefix) "/etc/storefront/tls/tls.crt" -}}
{{- $_ := set $config (printf "%s_TLS_KEY_FILE" $prefix) "/etc/storefront/tls/tls.key" -}}
{{- end -}}
{{- end -}}
{{- range $name, $value := .values.config -}}
{{- $_ := set $config $name (toString $value) -}}
{{- end -}}
{{- range $name := keys $config | sortAlpha -}}
{{- with index $config $name }}
{{ $name }}: {{ . | quote }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The path of control.webhookUrl, without a slash at its end. */}}
{{- define "storefront.webhookPath" -}}
{{- (urlParse .Values.control.webhookUrl).path | trimSuffix "/" -}}
{{- end -}}

{{/* dict root, name, values, prefix, config: adds the settings of the components that have stores. */}}
{{- define "storefront.storeConfig" -}}
{{- $v := .root.Values -}}
{{- $prefix := .prefix -}}
{{- $config := .config -}}
{{- with include "storefront.databaseUrl" (dict "root" .root "role" .name) -}}
{{- $_ := set $config (printf "%s_DATABASE_URL" $prefix) . -}}
{{- end -}}
{{- if ne .name "relay" -}}
{{- $_ := set $config (printf "%s_LISTEN" $prefix) ":8080" -}}
{{- $_ := set $config (printf "%s_ERRORS_BASE" $prefix) (required "errorsBase is required: the prefix of a problem's type, for example https://errors.example.com/" $v.errorsBase) -}}
{{- $_ := set $config (printf "%s_REDIS_ADDRS" $prefix) (join "," (required "redis.addrs is required" $v.redis.addrs)) -}}
{{- if $v.redis.cluster -}}
{{- $_ := set $config (printf "%s_REDIS_CLUSTER" $prefix) "true" -}}
{{- end -}}
{{- $_ := set $config (printf "%s_REDIS_USERNAME" $prefix) $v.redis.username -}}
{{- $_ := set $config (printf "%s_REDIS_TLS" $prefix) (toString $v.redis.tls) -}}
{{- $_ := set $config (printf "%s_REDIS_PREFIX" $prefix) $v.redis.prefix -}}
{{- end -}}
{{- if ne .name "control" -}}
{{- $_ := set $config (printf "%s_KAFKA_BROKERS" $prefix) (join "," (required "kafka.brokers is required" $v.kafka.brokers)) -}}
{{- $_ := set $config (printf "%s_KAFKA_SIGNALS_TOPIC" $prefix) $v.kafka.signalsTopic -}}
{{- $_ := set $config (printf "%s_KAFKA_DECISIONS_TOPIC" $prefix) $v.kafka.decisionsTopic -}}
{{- $_ := set $config (printf "%s_KAFKA_TOPIC_PARTITIONS" $prefix) (toString $v.kafka.topicPartitions) -}}
{{- $_ := set $config (printf "%s_KAFKA_REPLICATION_FACTOR" $prefix) (toString $v.kafka.replicationFactor) -}}
{{- if $v.kafka.tls -}}
{{- $_ := set $config (printf "%s_KAFKA_TLS" $prefix) "true" -}}
{{- end -}}
{{- $_ := set $config (printf "%s_KAFKA_SASL" $prefix) $v.kafka.sasl.mechanism -}}
{{- $_ := set $config (printf "%s_KAFKA_USERNAME" $prefix) $v.kafka.sasl.username -}}
{{- $_ := set $config (printf "%s_ENGINE_URL" $prefix) $v.engine.url -}}
{{- end -}}
{{- if eq .name "edge" -}}
{{- $_ := set $config "EDGE_REPLICAS" (include "storefront.rateReplicas" .root) -}}
{{- $_ := set $config "EDGE_DRAIN_DELAY" (printf "%vs" .values.shutdown.drainDelaySeconds) -}}
{{- else if eq .name "control" -}}
{{- $_ := set $config "CONTROL_WEBHOOK_URL" .values.webhookUrl -}}
{{- $_ := set $config "CONTROL_KEYSET_FILE" $v.secrets.keyset.file -}}
{{- else -}}
{{- $_ := set $config "RELAY_KAFKA_GROUP" $v.kafka.consumerGroup -}}
{{- end -}}
{{- if $v.tracing.endpoint -}}
{{- $_ := set $config (printf "%s_TRACE_ENDPOINT" $prefix) $v.tracing.endpoint -}}
{{- $_ := set $config (printf "%s_TRACE_RATIO" $prefix) (toString $v.tracing.ratio) -}}
{{- end -}}
{{- end -}}

{{- define "storefront.prefix" -}}
{{- get (dict "edge" "EDGE" "control" "CONTROL" "relay" "RELAY" "receiver" "RECEIVER") . -}}
{{- end -}}

{{- define "storefront.rateReplicas" -}}
{{- $edge := .Values.edge -}}
{{- if kindIs "invalid" $edge.rateReplicas -}}
{{- ternary $edge.autoscaling.minReplicas $edge.replicaCount $edge.autoscaling.enabled | int -}}
{{- else -}}
{{- $edge.rateReplicas | int -}}
{{- end -}}
{{- end -}}

{{/* dict root, name, values: the environment of a container. */}}
{{- define "storefront.env" -}}
{{- $v := .root.Values -}}
{{- $prefix := include "storefront.prefix" .name -}}
- name: GOMEMLIMIT
  valueFrom:
    resourceFieldRef: {containerName: {{ .name }}, resource: limits.memory}
{{- if eq .name "receiver" }}
{{- include "storefront.ownSecretEnv" (dict "root" .root "item" "connectorTokens" "needed" true "variable" "RECEIVER_CONNECTOR_TOKENS") }}
{{- else }}
{{- with include "storefront.storeEnv" . | trim }}
{{ . }}
{{- end }}
{{- end }}
{{- include "storefront.caEnv" .root }}
{{- with .values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* dict root, name, values: the secrets of the components that have stores. */}}
{{- define "storefront.storeEnv" -}}
{{- $v := .root.Values -}}
{{- $prefix := include "storefront.prefix" .name -}}
{{- include "storefront.databaseEnv" (dict "root" .root "role" .name "prefix" $prefix) }}
{{- if ne .name "relay" }}
{{- with include "storefront.secretRef" (dict "root" .root "item" (dict "existingSecret" $v.redis.existingSecret "key" $v.redis.passwordKey) "shared" "" "auth" "redisPassword" "what" "redis" "needed" false) }}
- name: {{ $prefix }}_REDIS_PASSWORD
  valueFrom:
    secretKeyRef: {{ . }}
{{- end }}
{{- end }}
{{- if and (ne .name "control") $v.kafka.sasl.mechanism }}
{{- with include "storefront.secretRef" (dict "root" .root "item" (dict "existingSecret" $v.kafka.sasl.existingSecret "key" $v.kafka.sasl.passwordKey) "shared" "" "auth" "kafkaPassword" "what" "kafka.sasl" "needed" true) }}
- name: {{ $prefix }}_KAFKA_PASSWORD
  valueFrom:
    secretKeyRef: {{ . }}
{{- end }}
{{- end }}
{{- if and (ne .name "control") $v.engine.url }}
{{- with include "storefront.secretRef" (dict "root" .root "item" (dict "existingSecret" $v.engine.existingSecret "key" $v.engine.tokenKey) "shared" "" "auth" "engineToken" "what" "engine" "needed" true) }}
- name: {{ $prefix }}_ENGINE_TOKEN
  valueFrom:
    secretKeyRef: {{ . }}
{{- end }}
{{- end }}
{{- if eq .name "edge" }}
{{- include "storefront.ownSecretEnv" (dict "root" .root "item" "decisionKeys" "needed" true "variable" "EDGE_DECISION_KEYS") }}
{{- else if eq .name "control" }}
{{- if not $v.secrets.keyset.file }}
{{- include "storefront.ownSecretEnv" (dict "root" .root "item" "keyset" "needed" true "variable" "CONTROL_KEYSET") }}
{{- end }}
{{- include "storefront.ownSecretEnv" (dict "root" .root "item" "connectorTokens" "needed" true "variable" "CONTROL_CONNECTOR_TOKENS") }}
{{- include "storefront.ownSecretEnv" (dict "root" .root "item" "backendTokens" "variable" "CONTROL_BACKEND_TOKENS") }}
{{- include "storefront.ownSecretEnv" (dict "root" .root "item" "engineTokens" "variable" "CONTROL_ENGINE_TOKENS") }}
{{- include "storefront.ownSecretEnv" (dict "root" .root "item" "connectorPepper" "variable" "CONTROL_CONNECTOR_PEPPER") }}
{{- include "storefront.ownSecretEnv" (dict "root" .root "item" "appSecrets" "variable" "CONTROL_APP_SECRETS") }}
{{- end }}
{{- end -}}

{{/* The CAs of a folder are trusted in addition to those of the binary. */}}
{{- define "storefront.caEnv" -}}
{{- if or .Values.caBundle.existingSecret .Values.caBundle.existingConfigMap }}
- name: SSL_CERT_DIR
  value: /etc/storefront/ca
{{- end }}
{{- end -}}

{{- define "storefront.caMount" -}}
{{- if or .Values.caBundle.existingSecret .Values.caBundle.existingConfigMap }}
- {name: ca, mountPath: /etc/storefront/ca, readOnly: true}
{{- end }}
{{- end -}}

{{- define "storefront.caVolume" -}}
{{- with .Values.caBundle }}
{{- if .existingSecret }}
- name: ca
  secret:
    secretName: {{ .existingSecret | quote }}
    items: [{key: {{ .key | quote }}, path: ca.crt}]
{{- else if .existingConfigMap }}
- name: ca
  configMap:
    name: {{ .existingConfigMap | quote }}
    items: [{key: {{ .key | quote }}, path: ca.crt}]
{{- end }}
{{- end }}
{{- end -}}

{{/* The certificate of the listener. Without subPath, so that the files follow the Secret. */}}
{{- define "storefront.tlsMount" -}}
{{- with .tls }}
{{- if .existingSecret }}
- {name: tls, mountPath: /etc/storefront/tls, readOnly: true}
{{- end }}
{{- end }}
{{- end -}}

{{- define "storefront.tlsVolume" -}}
{{- with .tls }}
{{- if .existingSecret }}
- name: tls
  secret:
    secretName: {{ .existingSecret | quote }}
    items: [{key: {{ .certKey | quote }}, path: tls.crt}, {key: {{ .keyKey | quote }}, path: tls.key}]
{{- end }}
{{- end }}
{{- end -}}

{{/* values: the scheme of a component's listener. */}}
{{- define "storefront.scheme" -}}
{{- with .tls }}{{ ternary "https" "http" (ne .existingSecret "") }}{{ end -}}
{{- end -}}
