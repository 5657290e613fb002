{{- define "oracle-worker.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "oracle-worker.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "oracle-worker.labels" -}}
{{ include "oracle-worker.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "oracle-worker.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "oracle-worker.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}{{ .Values.serviceAccount.name | default (include "oracle-worker.name" .) }}
{{- else }}{{ .Values.serviceAccount.name | default "default" }}{{ end }}
{{- end }}

{{/* Seconds of a duration as settings write it, rounded up: 30, 30s, 500ms, 5m, 2h, 1d. */}}
{{- define "oracle-worker.seconds" -}}
{{- $text := trim (toString .) -}}
{{- $number := float64 (regexFind "^[0-9]+([.][0-9]+)?" $text) -}}
{{- $unit := regexFind "[a-z]+$" $text | default "s" -}}
{{- $per := dict "ms" 0.001 "s" 1.0 "m" 60.0 "h" 3600.0 "d" 86400.0 -}}
{{- if not (hasKey $per $unit) }}{{ fail (printf "%q is no duration: use 30s, 500ms, 5m, 2h or 1d" $text) }}{{ end -}}
{{- ceil (mulf $number (get $per $unit)) | int -}}
{{- end }}

{{/* A stop waits SHUTDOWN_GRACE for jobs, 5 s for handlers that were told to end, and writes what is left: 15 s cover it. */}}
{{- define "oracle-worker.grace" -}}
{{- $env := merge (dict) .Values.worker.env .Values.env -}}
{{- add (include "oracle-worker.seconds" ($env.SHUTDOWN_GRACE | default "30s") | int) 15 -}}
{{- end }}

{{- define "oracle-worker.healthPort" -}}
{{- $env := merge (dict) .Values.worker.env .Values.env -}}
{{- $port := toString ($env.HEALTH_PORT | default "0") -}}
{{- if eq $port "0" }}{{ fail "env.HEALTH_PORT must not be 0: probes and metrics need it" }}{{ end -}}
{{- $port -}}
{{- end }}

{{/* Refused here, because a program without an address would look for an embedded PostgreSQL. */}}
{{- define "oracle-worker.checkDatabase" -}}
{{- if and (not .Values.env.DATABASE_URL) (not .Values.databaseSecret.name) -}}
{{- fail "No database: set env.DATABASE_URL, or databaseSecret.name to a Secret that holds it" -}}
{{- end -}}
{{- end }}

{{- define "oracle-worker.fromSecret" -}}
- name: {{ .variable }}
  valueFrom:
    secretKeyRef:
      name: {{ .secret }}
      key: {{ .key }}
{{- end }}

{{/* Addresses from Secrets, never in a pod's description; the rest of the settings as they are. */}}
{{- define "oracle-worker.env" -}}
{{- $root := .root -}}
{{- $settings := merge (dict) .more $root.Values.env -}}
{{- $secret := $root.Values.databaseSecret.name -}}
{{- $own := printf "%s-addresses" (include "oracle-worker.name" $root) -}}
{{- if $secret }}
{{ include "oracle-worker.fromSecret" (dict "variable" "DATABASE_URL" "secret" $secret "key" $root.Values.databaseSecret.key) }}
{{- with $root.Values.databaseSecret.directKey }}
{{ include "oracle-worker.fromSecret" (dict "variable" "DIRECT_DATABASE_URL" "secret" $secret "key" .) }}
{{- end }}
{{- with $root.Values.databaseSecret.redisKey }}
{{ include "oracle-worker.fromSecret" (dict "variable" "REDIS_URL" "secret" $secret "key" .) }}
{{- end }}
{{- else }}
{{- range $name := list "DATABASE_URL" "DIRECT_DATABASE_URL" "REDIS_URL" }}
{{- if get $root.Values.env $name }}
{{ include "oracle-worker.fromSecret" (dict "variable" $name "secret" $own "key" $name) }}
{{- end }}
{{- end }}
{{- end }}
{{- range $name, $value := omit $settings "DATABASE_URL" "DIRECT_DATABASE_URL" "REDIS_URL" }}
- name: {{ $name }}
  value: {{ kindIs "slice" $value | ternary (join "," $value) (toString $value) | quote }}
{{- end }}
{{- end }}

{{- define "oracle-worker.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "oracle-worker.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- define "oracle-worker.volumes" -}}
- name: tmp
  emptyDir:
    sizeLimit: {{ .Values.tmpSizeLimit }}
- name: data
{{- if .Values.artifacts.persistentVolumeClaim }}
  persistentVolumeClaim:
    claimName: {{ .Values.artifacts.persistentVolumeClaim }}
{{- else }}
  emptyDir:
    sizeLimit: {{ .Values.artifacts.sizeLimit }}
{{- end }}
{{- end }}

{{- define "oracle-worker.mounts" -}}
- name: tmp
  mountPath: /tmp
- name: data
  mountPath: /data
{{- end }}

{{- define "oracle-worker.scheduling" -}}
{{- with .nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
