{{/* Names and labels. */}}

{{- define "storefront.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* At most 40 characters, so that suffixes such as "-control-ops" fit a label. */}}
{{- define "storefront.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "storefront.name" . -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "storefront.serviceAccountName" -}}
{{- default (ternary (include "storefront.fullname" .) "default" .Values.serviceAccount.create) .Values.serviceAccount.name -}}
{{- end -}}

{{/* dict root, name (component): the labels of selectors, which never change. */}}
{{- define "storefront.selectorLabels" -}}
app.kubernetes.io/name: {{ include "storefront.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .name }}
{{- end -}}

{{/* dict root, name, labels (additional): the labels of pods, without a version, so that a new chart with equal pods does not replace them. */}}
{{- define "storefront.podLabels" -}}
{{ include "storefront.selectorLabels" . }}
app.kubernetes.io/part-of: storefront
{{- with merge (dict) (default (dict) .labels) .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* dict root, name, labels (additional) */}}
{{- define "storefront.labels" -}}
{{ include "storefront.podLabels" . }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* dict root, name, suffix, labels, annotations: the metadata of an object. */}}
{{- define "storefront.metadata" -}}
name: {{ include "storefront.fullname" .root }}-{{ .name }}{{ default "" .suffix }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "storefront.labels" . | nindent 2 }}
{{- with merge (dict) (default (dict) .annotations) .root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* dict root, image. A released chart has the digests of its images in annotations; a tag or a digest in the values replaces them. */}}
{{- define "storefront.image" -}}
{{- $registry := default .image.registry .root.Values.global.imageRegistry -}}
{{- $path := ternary (printf "%s/%s" $registry .image.repository) .image.repository (ne $registry "") -}}
{{- $digest := .image.digest -}}
{{- if not (or $digest .image.tag) -}}
{{- $digest = index .root.Chart.Annotations (printf "storefront/digest-%s" (base .image.repository)) -}}
{{- end -}}
{{- if $digest -}}
{{- printf "%s@%s" $path $digest -}}
{{- else -}}
{{- printf "%s:%s" $path (default .root.Chart.AppVersion .image.tag) -}}
{{- end -}}
{{- end -}}

{{/* The components that the values enable, as JSON. */}}
{{- define "storefront.components" -}}
{{- $all := list "edge" "control" "relay" -}}
{{- if .Values.receiver.enabled -}}
{{- $all = append $all "receiver" -}}
{{- end -}}
{{- toJson $all -}}
{{- end -}}
