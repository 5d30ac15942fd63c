{{- define "kubetide.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "kubetide.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "kubetide.labels" -}}
{{ include "kubetide.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- /* What `kubetide run --config` reads: the values' own settings, and where the pod serves and writes. */ -}}
{{- define "kubetide.config" -}}
{{- $fixed := dict "address" (printf ":%d" (int .Values.service.port)) "out" "/var/lib/kubetide" -}}
{{- toYaml (merge $fixed .Values.config) -}}
{{- end -}}

{{- define "kubetide.subjects" -}}
- kind: ServiceAccount
  name: {{ include "kubetide.fullname" . }}
  namespace: {{ .Release.Namespace }}
{{- end -}}
