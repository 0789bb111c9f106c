{{/* The sources of secret values. */}}

{{/* The Secret of auth.create, and a copy for the migration, which runs before the other objects exist. */}}
{{- define "storefront.authName" -}}
{{ include "storefront.fullname" . }}-auth
{{- end -}}
{{- define "storefront.authMigrateName" -}}
{{ include "storefront.fullname" . }}-auth-migrate
{{- end -}}

{{/*
dict root, item {existingSecret, key}, shared (Secret of those that name none), auth (name in values.auth), what (for the
refusal), needed. The reference as YAML, or nothing when the item is not used.
*/}}
{{- define "storefront.secretRef" -}}
{{- $auth := .root.Values.auth -}}
{{- if .item.existingSecret -}}
{{- if .item.key -}}
{name: {{ .item.existingSecret | quote }}, key: {{ .item.key | quote }}}
{{- else -}}
{{- fail (printf "%s names an existingSecret and no key" .what) -}}
{{- end -}}
{{- else if and $auth.create (index $auth .auth) -}}
{name: {{ include "storefront.authName" .root | quote }}, key: {{ .auth | kebabcase | quote }}}
{{- else if and .shared .item.key -}}
{name: {{ .shared | quote }}, key: {{ .item.key | quote }}}
{{- else if .needed -}}
{{- fail (printf "%s is required: name an existing Secret and a key, or (for a trial) set auth.create and auth.%s" .what .auth) -}}
{{- end -}}
{{- end -}}

{{/* dict root, item, auth, what, needed, variable: the environment variable of one of our secrets, or nothing. */}}
{{- define "storefront.ownSecretEnv" -}}
{{- $item := index .root.Values.secrets .item -}}
{{- $shared := .root.Values.secrets.existingSecret -}}
{{- $needed := default false .needed -}}
{{- /* With a shared Secret an item that has a key is used; with values of a trial, one that has a value. */ -}}
{{- if and .root.Values.auth.create (not $shared) -}}
{{- $shared = "" -}}
{{- end -}}
{{- with include "storefront.secretRef" (dict "root" .root "item" $item "shared" $shared "auth" .item "what" (printf "secrets.%s" .item) "needed" $needed) }}
- name: {{ $.variable }}
  valueFrom:
    secretKeyRef: {{ . }}
{{- end }}
{{- end -}}

{{/* dict root, role (edge, control, relay, migrations), prefix: DATABASE_URL, or PGPASSWORD if the URL is in the ConfigMap. */}}
{{- define "storefront.databaseEnv" -}}
{{- $pg := .root.Values.postgresql -}}
{{- $role := index $pg .role -}}
{{- $auth := .root.Values.auth -}}
{{- $secret := default $pg.existingSecret $role.existingSecret -}}
{{- if eq (include "storefront.databaseFromAuth" .) "true" }}
- name: {{ .prefix }}_DATABASE_URL
  valueFrom:
    secretKeyRef: {name: {{ ternary (include "storefront.authMigrateName" .root) (include "storefront.authName" .root) (and (eq .role "migrations") (eq .root.Values.migrations.mode "hook")) | quote }}, key: database-url}
{{- else if $role.urlKey }}
- name: {{ .prefix }}_DATABASE_URL
  valueFrom:
    secretKeyRef: {name: {{ required (printf "postgresql.%s.urlKey needs an existingSecret" .role) $secret | quote }}, key: {{ $role.urlKey | quote }}}
{{- else if $role.passwordKey }}
- name: PGPASSWORD
  valueFrom:
    secretKeyRef: {name: {{ required (printf "postgresql.%s: name an existingSecret with the password, or set auth.create and auth.databaseUrl for a trial" .role) $secret | quote }}, key: {{ $role.passwordKey | quote }}}
{{- end }}
{{- end -}}

{{- define "storefront.databaseFromAuth" -}}
{{- $role := index .root.Values.postgresql .role -}}
{{- and .root.Values.auth.create (ne .root.Values.auth.databaseUrl "") (eq $role.existingSecret "") (eq .root.Values.postgresql.existingSecret "") -}}
{{- end -}}

{{/* dict root, role: the URL without a password, or nothing if the whole URL is secret. */}}
{{- define "storefront.databaseUrl" -}}
{{- $pg := .root.Values.postgresql -}}
{{- $role := index $pg .role -}}
{{- if not (or $role.urlKey (eq (include "storefront.databaseFromAuth" .) "true")) -}}
{{- $host := required (printf "postgresql.host is required, unless postgresql.%s.urlKey names a whole URL" .role) $pg.host -}}
{{- $query := list (printf "sslmode=%s" $pg.sslMode) -}}
{{- range $name, $value := $pg.parameters -}}
{{- $query = append $query (printf "%s=%s" $name (toString $value | urlquery)) -}}
{{- end -}}
postgres://{{ $role.username | urlquery }}@{{ $host }}:{{ $pg.port }}/{{ $pg.database | urlquery }}?{{ join "&" $query }}
{{- end -}}
{{- end -}}
