{{/* All names begin with the release's, and stay short enough for what is added. */}}
{{- define "holdfast.name" -}}
{{- if contains "holdfast" .Release.Name -}}
{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-holdfast" .Release.Name | trunc 40 | trimSuffix "-" }}
{{- end -}}
{{- end -}}

{{/* What selects the pods of a component; a Deployment's never changes. */}}
{{- define "holdfast.selector" -}}
app.kubernetes.io/name: holdfast
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "holdfast.labels" -}}
{{ include "holdfast.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "holdfast.image" -}}
{{- $image := .root.Values.image -}}
{{- $name := ternary $image.prefix (printf "%s-%s" $image.prefix .component) (eq .component "holdfast") -}}
{{- with get $image.digests .component -}}
{{ printf "%s@%s" $name . }}
{{- else -}}
{{ printf "%s:%s" $name ($image.tag | default .root.Chart.AppVersion) }}
{{- end -}}
{{- end -}}

{{- define "holdfast.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "holdfast.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{/* Where pods may be, as spread as they can. */}}
{{- define "holdfast.placement" -}}
topologySpreadConstraints:
{{- range $key := list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
  - maxSkew: 1
    topologyKey: {{ $key }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "holdfast.selector" $ | nindent 8 }}
{{- end }}
{{- with .values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The database of a component: workers and repair log in as the same. */}}
{{- define "holdfast.login" -}}
{{ ternary "api" "worker" (eq .component "api") }}
{{- end -}}

{{- define "holdfast.env" -}}
{{- $v := .root.Values -}}
{{- $login := include "holdfast.login" . -}}
{{- $database := get $v.database $login -}}
- name: HOLDFAST_DATABASE_URL
  valueFrom:
    secretKeyRef: {name: {{ $database.secret | quote }}, key: {{ $database.key | quote }}}
- name: HOLDFAST_DATABASE_POOLER
  value: {{ $v.database.pooler | quote }}
{{- with get $v.database.direct $login }}
- name: HOLDFAST_DATABASE_DIRECT_URL
  valueFrom:
    secretKeyRef: {name: {{ $database.secret | quote }}, key: {{ . | quote }}}
{{- end }}
{{- with $v.nats.url }}
- name: HOLDFAST_NATS_URL
  value: {{ . | quote }}
- name: HOLDFAST_NATS_REPLICAS
  value: {{ $v.nats.replicas | quote }}
{{- if $v.nats.caSecret }}
- name: HOLDFAST_NATS_CA_FILE
  value: /etc/holdfast/nats/ca.crt
{{- end }}
{{- if get $v.nats.seedSecrets $.component }}
- name: HOLDFAST_NATS_NKEY_FILE
  value: /etc/holdfast/nats-user/seed
{{- end }}
{{- end }}
- name: HOLDFAST_EXTRACTOR
  value: {{ $v.models.extractor | quote }}
- name: HOLDFAST_EMBEDDER
  value: {{ $v.models.embedder | quote }}
{{- with $v.models.openai }}
{{- with .baseURL }}
- name: HOLDFAST_OPENAI_BASE_URL
  value: {{ . | quote }}
{{- end }}
{{- with .model }}
- name: HOLDFAST_OPENAI_MODEL
  value: {{ . | quote }}
{{- end }}
{{- with .embeddingModel }}
- name: HOLDFAST_OPENAI_EMBEDDING_MODEL
  value: {{ . | quote }}
{{- end }}
{{- if .secret }}
- name: HOLDFAST_OPENAI_API_KEY
  valueFrom:
    secretKeyRef: {name: {{ .secret | quote }}, key: {{ .key | quote }}}
{{- end }}
{{- end }}
{{- with $v.models.anthropic }}
{{- with .baseURL }}
- name: HOLDFAST_ANTHROPIC_BASE_URL
  value: {{ . | quote }}
{{- end }}
{{- with .model }}
- name: HOLDFAST_ANTHROPIC_MODEL
  value: {{ . | quote }}
{{- end }}
{{- if .secret }}
- name: HOLDFAST_ANTHROPIC_API_KEY
  valueFrom:
    secretKeyRef: {name: {{ .secret | quote }}, key: {{ .key | quote }}}
{{- end }}
{{- end }}
{{- if $v.encryption.secret }}
- name: HOLDFAST_ENCRYPTION_KEYS_FILE
  value: /etc/holdfast/encryption/keys
- name: HOLDFAST_ENCRYPTION_OPEN_ONLY
  value: {{ $v.encryption.openOnly | quote }}
{{- end }}
{{- range $name, $value := $v.settings }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end -}}

{{- define "holdfast.mounts" -}}
{{- $v := .root.Values -}}
{{- if $v.database.caSecret }}
- {name: database-ca, mountPath: /etc/holdfast/database, readOnly: true}
{{- end }}
{{- if and $v.nats.url $v.nats.caSecret }}
- {name: nats-ca, mountPath: /etc/holdfast/nats, readOnly: true}
{{- end }}
{{- if and $v.nats.url (get $v.nats.seedSecrets .component) }}
- {name: nats-user, mountPath: /etc/holdfast/nats-user, readOnly: true}
{{- end }}
{{- if $v.encryption.secret }}
- {name: encryption, mountPath: /etc/holdfast/encryption, readOnly: true}
{{- end }}
{{- end -}}

{{/* Seeds and keys are for the pod's group alone: processes refuse files that others may read. */}}
{{- define "holdfast.volumes" -}}
{{- $v := .root.Values -}}
{{- if $v.database.caSecret }}
- name: database-ca
  secret: {secretName: {{ $v.database.caSecret | quote }}, items: [{key: ca.crt, path: ca.crt}]}
{{- end }}
{{- if and $v.nats.url $v.nats.caSecret }}
- name: nats-ca
  secret: {secretName: {{ $v.nats.caSecret | quote }}, items: [{key: ca.crt, path: ca.crt}]}
{{- end }}
{{- if $v.nats.url }}
{{- with get $v.nats.seedSecrets .component }}
- name: nats-user
  secret: {secretName: {{ . | quote }}, defaultMode: 0440, items: [{key: seed, path: seed}]}
{{- end }}
{{- end }}
{{- with $v.encryption }}
{{- if .secret }}
- name: encryption
  secret: {secretName: {{ .secret | quote }}, defaultMode: 0440, items: [{key: {{ .key | quote }}, path: keys}]}
{{- end }}
{{- end }}
{{- end -}}

{{/* Liveness asks the process alone: a database that is down is no reason to start it anew. */}}
{{- define "holdfast.probes" -}}
startupProbe:
  httpGet: {path: /healthz, port: admin}
  periodSeconds: 2
  failureThreshold: 30
livenessProbe:
  httpGet: {path: /healthz, port: admin}
  periodSeconds: 10
  timeoutSeconds: 3
  failureThreshold: 6
readinessProbe:
  httpGet: {path: /readyz, port: admin}
  periodSeconds: 5
  timeoutSeconds: 3
  failureThreshold: 2
{{- end -}}

{{/* The pod of a component; .container holds what is its own. */}}
{{- define "holdfast.pod" -}}
serviceAccountName: {{ include "holdfast.name" .root }}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext: {{- include "holdfast.podSecurity" . | nindent 2 }}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{ include "holdfast.placement" . }}
{{- with include "holdfast.volumes" . | trim }}
volumes: {{- . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "holdfast.container" -}}
name: {{ .component }}
image: {{ include "holdfast.image" . | quote }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
securityContext: {{- include "holdfast.containerSecurity" . | nindent 2 }}
resources: {{- toYaml .values.resources | nindent 2 }}
{{- with include "holdfast.mounts" . | trim }}
volumeMounts: {{- . | nindent 2 }}
{{- end }}
{{- end -}}
