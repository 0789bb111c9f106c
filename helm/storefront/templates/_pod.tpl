{{/* The pods of the components: dict root, name, values. */}}

{{- define "storefront.scaled" -}}
{{- or .values.autoscaling.enabled (and (eq .name "relay") .root.Values.relay.keda.enabled) -}}
{{- end -}}

{{/* The minimum number of pods, with or without an autoscaler. */}}
{{- define "storefront.leastReplicas" -}}
{{- if .values.autoscaling.enabled -}}
{{- .values.autoscaling.minReplicas | int -}}
{{- else if eq (include "storefront.scaled" .) "true" -}}
{{- .root.Values.relay.keda.minReplicaCount | int -}}
{{- else -}}
{{- .values.replicaCount | int -}}
{{- end -}}
{{- end -}}

{{/* With an autoscaler, the number that runs now: a Deployment whose replicas are taken away falls to one pod. Without a cluster, as under GitOps, it is unknown. */}}
{{- define "storefront.replicas" -}}
{{- if ne (include "storefront.scaled" .) "true" -}}
{{- .values.replicaCount -}}
{{- else -}}
{{- $running := lookup "apps/v1" "Deployment" .root.Release.Namespace (printf "%s-%s" (include "storefront.fullname" .root) .name) -}}
{{- if $running -}}
{{- $running.spec.replicas | int -}}
{{- else if .values.autoscaling.preserveReplicas -}}
{{- .values.replicaCount -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "storefront.deployment" -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  {{- include "storefront.metadata" (dict "root" .root "name" .name "annotations" .values.deploymentAnnotations) | nindent 2 }}
spec:
  {{- with include "storefront.replicas" . }}
  replicas: {{ . }}
  {{- end }}
  revisionHistoryLimit: 5
  {{- with .values.minReadySeconds }}
  minReadySeconds: {{ . }}
  {{- end }}
  progressDeadlineSeconds: {{ .values.progressDeadlineSeconds }}
  strategy:
    {{- toYaml .values.strategy | nindent 4 }}
  selector:
    matchLabels:
      {{- include "storefront.selectorLabels" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "storefront.podLabels" (dict "root" .root "name" .name "labels" .values.podLabels) | nindent 8 }}
      annotations:
        checksum/config: {{ include "storefront.config" . | sha256sum }}
        {{- if .root.Values.auth.create }}
        checksum/auth: {{ toJson .root.Values.auth | sha256sum }}
        {{- end }}
        {{- with .values.podAnnotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    spec:
      {{- include "storefront.podSpec" . | nindent 6 }}
{{- end -}}

{{- define "storefront.podSpec" -}}
serviceAccountName: {{ include "storefront.serviceAccountName" .root }}
{{ include "storefront.podCommon" .root }}
{{- with .values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- range $field := list "runtimeClassName" "schedulerName" "dnsPolicy" }}
{{- with index $.values $field }}
{{ $field }}: {{ . }}
{{- end }}
{{- end }}
{{- with .values.dnsConfig }}
dnsConfig:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.hostAliases }}
hostAliases:
  {{- toYaml . | nindent 2 }}
{{- end }}
terminationGracePeriodSeconds: {{ .values.shutdown.terminationGracePeriodSeconds }}
{{- with .values.initContainers }}
initContainers:
  {{- toYaml . | nindent 2 }}
{{- end }}
containers:
  - name: {{ .name }}
    {{- include "storefront.container" . | nindent 4 }}
  {{- with .values.extraContainers }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- $volumes := printf "%s\n%s\n%s" (include "storefront.caVolume" .root) (include "storefront.tlsVolume" .values) (ternary (toYaml .values.extraVolumes) "" (gt (len .values.extraVolumes) 0)) | trim }}
{{- with $volumes }}
volumes:
  {{- . | nindent 2 }}
{{- end }}
{{- include "storefront.placement" . }}
{{- end -}}

{{/* Common to all pods. Service links would add variables with the prefixes of our settings, which the services reject as unknown. */}}
{{- define "storefront.podCommon" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.global.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- toYaml .Values.podSecurityContext | nindent 2 }}
{{- end -}}

{{- define "storefront.container" -}}
{{- $image := ternary .root.Values.control.image .values.image (eq .name "receiver") -}}
image: {{ include "storefront.image" (dict "root" .root "image" $image) | quote }}
imagePullPolicy: {{ $image.pullPolicy }}
args: [{{ ternary "receive" "serve" (eq .name "receiver") }}]
envFrom:
  - configMapRef: {name: {{ include "storefront.fullname" .root }}-{{ .name }}}
  {{- with .values.extraEnvFrom }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
env:
  {{- include "storefront.env" . | nindent 2 }}
ports:
  {{- if ne .name "relay" }}
  - {name: http, containerPort: 8080, protocol: TCP}
  {{- end }}
  - {name: ops, containerPort: 9090, protocol: TCP}
{{ include "storefront.probe" (dict "probes" .values.probes "name" "startup" "path" "/livez" "times" (dict "periodSeconds" 2 "timeoutSeconds" 2 "failureThreshold" 30)) }}
{{ include "storefront.probe" (dict "probes" .values.probes "name" "liveness" "path" "/livez" "times" (dict "periodSeconds" 10 "timeoutSeconds" 5 "failureThreshold" 6)) }}
{{ include "storefront.probe" (dict "probes" .values.probes "name" "readiness" "path" "/readyz" "times" (dict "periodSeconds" 5 "timeoutSeconds" 4 "failureThreshold" 2)) }}
{{- if not (kindIs "invalid" .values.lifecycle) }}
{{- with .values.lifecycle }}
lifecycle:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- else }}
{{- with .values.shutdown.preStopSleepSeconds }}
lifecycle:
  preStop:
    sleep: {seconds: {{ . }}}
{{- end }}
{{- end }}
resources:
  {{- toYaml .values.resources | nindent 2 }}
securityContext:
  {{- toYaml .root.Values.containerSecurityContext | nindent 2 }}
{{- $mounts := printf "%s\n%s\n%s" (include "storefront.caMount" .root) (include "storefront.tlsMount" .values) (ternary (toYaml .values.extraVolumeMounts) "" (gt (len .values.extraVolumeMounts) 0)) | trim }}
{{- with $mounts }}
volumeMounts:
  {{- . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* dict probes, name, path, times: what a probe asks is fixed, its times are values. */}}
{{- define "storefront.probe" -}}
{{ .name }}Probe:
  httpGet: {path: {{ .path }}, port: ops}
  {{- range $field, $value := merge (dict) (index (default (dict) .probes) .name | default (dict)) .times }}
  {{ $field }}: {{ $value }}
  {{- end }}
{{- end -}}

{{- define "storefront.placement" -}}
{{- if kindIs "invalid" .values.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- range $key := list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
  - maxSkew: 1
    topologyKey: {{ $key }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "storefront.selectorLabels" $ | nindent 8 }}
    matchLabelKeys: [pod-template-hash]
  {{- end }}
{{- else if .values.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- toYaml .values.topologySpreadConstraints | nindent 2 }}
{{- end }}
{{- with .values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
