{{/* Checks that the schema cannot express. Each message names the values. */}}

{{- define "storefront.checks" -}}
{{- $v := .Values -}}
{{- $edge := $v.edge.shutdown -}}
{{- include "storefront.checkGrace" (dict "name" "edge" "grace" $edge.terminationGracePeriodSeconds "parts" (list $edge.preStopSleepSeconds $edge.drainDelaySeconds 15 5 2) "text" "preStopSleepSeconds, drainDelaySeconds, 15 s for running requests, 5 s for records in flight, 2 s") -}}
{{- range $name := list "control" "relay" "receiver" -}}
{{- $shutdown := (index $v $name).shutdown -}}
{{- include "storefront.checkGrace" (dict "name" $name "grace" $shutdown.terminationGracePeriodSeconds "parts" (list $shutdown.preStopSleepSeconds 30 2) "text" "preStopSleepSeconds, 30 s for running work, 2 s") -}}
{{- end -}}
{{- range $name := list "edge" "control" "relay" "receiver" -}}
{{- $a := (index $v $name).autoscaling -}}
{{- if and $a.enabled (gt (int $a.minReplicas) (int $a.maxReplicas)) -}}
{{- fail (printf "%s.autoscaling.minReplicas is greater than maxReplicas" $name) -}}
{{- end -}}
{{- end -}}
{{- if and $v.relay.autoscaling.enabled $v.relay.keda.enabled -}}
{{- fail "relay.autoscaling.enabled and relay.keda.enabled exclude each other: both set the number of replicas" -}}
{{- end -}}
{{- if and $v.relay.keda.enabled (gt (int $v.relay.keda.minReplicaCount) (int $v.relay.keda.maxReplicaCount)) -}}
{{- fail "relay.keda.minReplicaCount is greater than maxReplicaCount" -}}
{{- end -}}
{{- if and $v.caBundle.existingSecret $v.caBundle.existingConfigMap -}}
{{- fail "caBundle: name a Secret or a ConfigMap, not both" -}}
{{- end -}}
{{- if ne (empty $v.kafka.sasl.mechanism) (empty $v.kafka.sasl.username) -}}
{{- fail "kafka.sasl: a mechanism needs a username, and a username a mechanism" -}}
{{- end -}}
{{- if eq $v.kafka.signalsTopic $v.kafka.decisionsTopic -}}
{{- fail "kafka.signalsTopic and kafka.decisionsTopic must be two topics" -}}
{{- end -}}
{{- if and $v.ingress.enabled (not $v.ingress.hosts) -}}
{{- fail "ingress.hosts is required with ingress.enabled: without a host it would serve all names" -}}
{{- end -}}
{{- if and $v.control.ingress.enabled (not $v.control.ingress.hosts) -}}
{{- fail "control.ingress.hosts is required with control.ingress.enabled" -}}
{{- end -}}
{{- range $name, $gateway := dict "gateway" $v.gateway "control.gateway" $v.control.gateway "receiver.gateway" $v.receiver.gateway -}}
{{- if and $gateway.enabled (not $gateway.parentRefs) -}}
{{- fail (printf "%s.parentRefs is required with %s.enabled" $name $name) -}}
{{- end -}}
{{- end -}}
{{- range $name := list "edge" "control" "receiver" -}}
{{- $service := (index $v $name).service -}}
{{- if ne $service.type "LoadBalancer" -}}
{{- range $field := list "loadBalancerClass" "loadBalancerSourceRanges" -}}
{{- if index $service $field -}}
{{- fail (printf "%s.service.%s is for type LoadBalancer" $name $field) -}}
{{- end -}}
{{- end -}}
{{- if and $service.externalTrafficPolicy (eq $service.type "ClusterIP") -}}
{{- fail (printf "%s.service.externalTrafficPolicy is for types NodePort and LoadBalancer" $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and $v.redis.cluster (gt (len $v.redis.addrs) 1) -}}
{{- fail "redis.cluster is for one address; several addresses mean a cluster" -}}
{{- end -}}
{{- if and $v.receiver.enabled (not $v.control.webhookUrl) -}}
{{- fail "control.webhookUrl is required with receiver.enabled: it is the address that providers are told, and its path is the receiver's" -}}
{{- end -}}
{{- if and $v.receiver.ingress.enabled (not $v.receiver.ingress.hosts) -}}
{{- fail "receiver.ingress.hosts is required with receiver.ingress.enabled" -}}
{{- end -}}
{{- $apps := or $v.secrets.appSecrets.key (and $v.auth.create $v.auth.appSecrets) -}}
{{- if and $apps (not $v.control.webhookUrl) -}}
{{- fail "control.webhookUrl is required with secrets.appSecrets (or auth.appSecrets): an installation registers webhooks there" -}}
{{- end -}}
{{- if and (eq $v.migrations.mode "hook") $v.migrations.ttlSecondsAfterFinished -}}
{{- fail "migrations.ttlSecondsAfterFinished is for mode job; a hook's Job is replaced by the next one" -}}
{{- end -}}
{{- $all := include "storefront.connections" . | fromJson -}}
{{- if and $v.postgresql.maxConnections (gt (int $all.total) (sub (int $v.postgresql.maxConnections) 5)) -}}
{{- fail (printf "postgresql.maxConnections is %d, and these values can open %d connections (edge %d, control %d, relay %d) and need 5 more for the migration and superusers: lower *_DATABASE_MAX_CONNS or the numbers of pods" (int $v.postgresql.maxConnections) (int $all.total) (int $all.edge) (int $all.control) (int $all.relay)) -}}
{{- end -}}
{{- include "storefront.checkCapabilities" . -}}
{{- end -}}

{{- define "storefront.checkGrace" -}}
{{- $need := 0 -}}
{{- range .parts -}}{{- $need = add $need (int .) -}}{{- end -}}
{{- if lt (int .grace) (int $need) -}}
{{- fail (printf "%s.shutdown.terminationGracePeriodSeconds is %d and must be at least %d (%s) to finish running work" .name (int .grace) (int $need) .text) -}}
{{- end -}}
{{- end -}}

{{/* On a cluster without a needed CRD, rendering fails with a message. Without a cluster, the CRDs are unknown and not checked. */}}
{{- define "storefront.checkCapabilities" -}}
{{- $v := .Values -}}
{{- if .Capabilities.APIVersions.Has "apps/v1/Deployment" -}}
{{- range $crd := list
  (list $v.monitoring.serviceMonitor.enabled "monitoring.coreos.com/v1/ServiceMonitor" "monitoring.serviceMonitor.enabled")
  (list $v.monitoring.prometheusRule.enabled "monitoring.coreos.com/v1/PrometheusRule" "monitoring.prometheusRule.enabled")
  (list $v.relay.keda.enabled "keda.sh/v1alpha1/ScaledObject" "relay.keda.enabled")
  (list $v.gateway.enabled "gateway.networking.k8s.io/v1/HTTPRoute" "gateway.enabled")
  (list $v.control.gateway.enabled "gateway.networking.k8s.io/v1/HTTPRoute" "control.gateway.enabled")
  (list (and $v.receiver.enabled $v.receiver.gateway.enabled) "gateway.networking.k8s.io/v1/HTTPRoute" "receiver.gateway.enabled") -}}
{{- if and (index $crd 0) (not ($.Capabilities.APIVersions.Has (index $crd 1))) -}}
{{- fail (printf "%s needs %s, which this cluster does not serve" (index $crd 2) (index $crd 1)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The most connections to PostgreSQL that the pods of each component can open, during a rollout, as JSON. */}}
{{- define "storefront.connections" -}}
{{- $all := dict -}}
{{- $total := 0 -}}
{{- range $name, $extra := dict "edge" 9 "control" 1 "relay" 0 -}}
{{- $c := index $.Values $name -}}
{{- $pods := int $c.replicaCount -}}
{{- if $c.autoscaling.enabled -}}
{{- $pods = int $c.autoscaling.maxReplicas -}}
{{- else if and (eq $name "relay") $.Values.relay.keda.enabled -}}
{{- $pods = int $.Values.relay.keda.maxReplicaCount -}}
{{- end -}}
{{- $surge := "25%" -}}
{{- with $c.strategy.rollingUpdate -}}
{{- if hasKey . "maxSurge" -}}
{{- $surge = toString .maxSurge -}}
{{- end -}}
{{- end -}}
{{- if eq $c.strategy.type "Recreate" -}}
{{- $surge = "0" -}}
{{- end -}}
{{- $more := int $surge -}}
{{- if hasSuffix "%" $surge -}}
{{- $more = div (add (mul $pods (trimSuffix "%" $surge | int)) 99) 100 -}}
{{- end -}}
{{- $each := get $c.config (printf "%s_DATABASE_MAX_CONNS" (include "storefront.prefix" $name)) | default "16" | int -}}
{{- $sum := mul (add $pods $more) (add $each $extra) -}}
{{- $_ := set $all $name $sum -}}
{{- $total = add $total $sum -}}
{{- end -}}
{{- $_ := set $all "total" $total -}}
{{- toJson $all -}}
{{- end -}}
