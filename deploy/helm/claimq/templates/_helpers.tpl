{{- define "claimq.name" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" }}{{ end -}}
{{- end }}

{{- define "claimq.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "claimq.labels" -}}
{{ include "claimq.selector" . }}
app.kubernetes.io/version: {{ default .Chart.AppVersion .Values.image.tag | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* The DNS name of the pod with the given ordinal: list ROOT ORDINAL. */}}
{{- define "claimq.host" -}}
{{- $root := index . 0 -}}
{{- $name := include "claimq.name" $root -}}
{{- printf "%s-%d.%s-peers.%s.svc.%s" $name (int (index . 1)) $name $root.Release.Namespace $root.Values.clusterDomain -}}
{{- end }}

{{/* The configuration file of the pod with the given ordinal: list ROOT ORDINAL. */}}
{{- define "claimq.config" -}}
{{- $root := index . 0 -}}
{{- $values := $root.Values -}}
{{- $ordinal := int (index . 1) -}}
{{- $name := include "claimq.name" $root -}}
{{- $initial := int $values.initialReplicas -}}
{{- $host := include "claimq.host" . -}}
node_id: {{ $name }}-{{ $ordinal }}
data_dir: /var/lib/claimq
http_addr: 0.0.0.0:7400
http_advertise: {{ $host }}:7400
peer_addr: 0.0.0.0:7401
peer_advertise: {{ $host }}:7401
drain_time: {{ int $values.drainSeconds }}s
{{- if include "claimq.asksClients" $root }}
health_addr: 0.0.0.0:7402
{{- end }}
{{- $joins := ge $ordinal $initial }}
{{- range $values.joinOrdinals }}{{ if eq (int .) $ordinal }}{{ $joins = true }}{{ end }}{{ end }}
{{- if $joins }}
join:
{{- range $i := until $initial }}
  {{- if ne $i $ordinal }}
  - {{ include "claimq.host" (list $root $i) }}:7401
  {{- end }}
{{- end }}
{{- if $values.joinToken.existingSecret }}
join_token_file: /etc/claimq/join-token/join.token
{{- end }}
{{- else }}
initial_cluster:
{{- range $i := until $initial }}
  - {{ $name }}-{{ $i }}={{ include "claimq.host" (list $root $i) }}:7401
{{- end }}
{{- end }}
{{- if $values.joinKey.existingSecret }}
join_key_file: /etc/claimq/join/join.key
{{- end }}
{{- if $values.keys.existingSecret }}
keys_file: /etc/claimq/keys/keys.yaml
{{- end }}
{{- if $values.zoneData.existingSecret }}
zone_data_file: /etc/claimq/zones/zones.zip
{{- end }}
{{- if $values.insecure }}
insecure: true
{{- end }}
{{- if $values.tls.http.existingSecret }}
http_tls:
  cert_file: /etc/claimq/http-tls/tls.crt
  key_file: /etc/claimq/http-tls/tls.key
  {{- if $values.tls.http.clientCertificates }}
  client_ca_file: /etc/claimq/http-tls/ca.crt
  {{- end }}
{{- end }}
{{- if $values.tls.peer.existingSecret }}
peer_tls:
  cert_file: /etc/claimq/peer-tls/tls.crt
  key_file: /etc/claimq/peer-tls/tls.key
  ca_file: /etc/claimq/peer-tls/ca.crt
{{- end }}
{{- with $values.settings }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The secrets that pods have, by the name of their folder. */}}
{{- define "claimq.secrets" -}}
{{- with .Values.joinKey.existingSecret }}
- {name: join, secret: {{ . }}}
{{- end }}
{{- with .Values.joinToken.existingSecret }}
- {name: join-token, secret: {{ . }}}
{{- end }}
{{- with .Values.keys.existingSecret }}
- {name: keys, secret: {{ . }}}
{{- end }}
{{- with .Values.zoneData.existingSecret }}
- {name: zones, secret: {{ . }}}
{{- end }}
{{- with .Values.tls.http.existingSecret }}
- {name: http-tls, secret: {{ . }}}
{{- end }}
{{- with .Values.tls.peer.existingSecret }}
- {name: peer-tls, secret: {{ . }}}
{{- end }}
{{- end }}

{{/* Whether clients need certificates. Kubernetes has none to show: probes have a port of their own then. */}}
{{- define "claimq.asksClients" -}}
{{- $tls := .Values.tls.http -}}
{{- if and $tls.existingSecret $tls.clientCertificates }}true{{ end -}}
{{- end }}

{{- define "claimq.alive" -}}
{{ include "claimq.probe" (list . "/healthz") }}
{{- end }}

{{- define "claimq.ready" -}}
{{ include "claimq.probe" (list . "/readyz") }}
{{- end }}

{{- define "claimq.probe" -}}
{{- $asks := include "claimq.asksClients" (index . 0) -}}
httpGet:
  path: {{ index . 1 }}
  port: {{ if $asks }}health{{ else }}api{{ end }}
  scheme: {{ if and (index . 0).Values.tls.http.existingSecret (not $asks) }}HTTPS{{ else }}HTTP{{ end }}
{{- end }}
