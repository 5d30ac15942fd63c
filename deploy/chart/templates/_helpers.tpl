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

{{- /* The account that the pods have: of this chart, or of somebody who made it before. */ -}}
{{- define "kubetide.account" -}}
{{- .Values.serviceAccount.name | default (include "kubetide.fullname" .) -}}
{{- end -}}

{{- /* A tag comes behind a colon, a digest behind an at sign, and holds over a tag. */ -}}
{{- define "kubetide.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{- printf "%s@%s" .repository .digest -}}
{{- else -}}
{{- printf "%s:%s" .repository (.tag | default $.Chart.AppVersion) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "kubetide.subjects" -}}
- kind: ServiceAccount
  name: {{ include "kubetide.account" . }}
  namespace: {{ .Release.Namespace }}
{{- end -}}
