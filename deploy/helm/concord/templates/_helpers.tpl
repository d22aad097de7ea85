{{- define "concord.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Labels that select: they never change. Takes (dict "root" $ "component" name); component may be empty. */}}
{{- define "concord.selector" -}}
app.kubernetes.io/name: {{ default .root.Chart.Name .root.Values.nameOverride | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- with .component }}
app.kubernetes.io/component: {{ . }}
{{- end }}
{{- end -}}

{{- define "concord.labels" -}}
{{ include "concord.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: concord
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* What services there are: a list as JSON. Helm takes a section that is empty out of the values, so they do not say it. */}}
{{- define "concord.serviceNames" -}}
{{- list "coordinator" "conflict-detector" "debate-facilitator" "escalation-timer" "agent-adapter" | toJson -}}
{{- end -}}

{{/* The services that are on, each with the defaults: {"coordinator": {...}, ...} as JSON. */}}
{{- define "concord.services" -}}
{{- $services := dict -}}
{{- range $name := include "concord.serviceNames" . | fromJsonArray -}}
{{- $own := default (dict) (index (default (dict) $.Values.services) $name) -}}
{{- $merged := mergeOverwrite (deepCopy $.Values.defaults) (deepCopy $own) -}}
{{- if $merged.enabled -}}
{{- $_ := set $services $name $merged -}}
{{- end -}}
{{- end -}}
{{- toJson $services -}}
{{- end -}}

{{- define "concord.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}
{{- end -}}

{{/*
A value as TOML. The strings of JSON are strings of TOML, and whole numbers, which Helm reads as fractions, are written
without one. Tables are written in one line, so that they may stand in lists.
*/}}
{{- define "concord.toml" -}}
{{- if kindIs "map" . -}}
{ {{- range $i, $key := keys . | sortAlpha }}{{ if $i }},{{ end }} {{ include "concord.tomlKey" $key }} = {{ include "concord.toml" (index $ $key) }}{{ end }} }
{{- else if kindIs "slice" . -}}
[{{ range $i, $item := . }}{{ if $i }}, {{ end }}{{ include "concord.toml" $item }}{{ end }}]
{{- else if kindIs "float64" . -}}
{{- if eq (float64 (int64 .)) . }}{{ int64 . }}{{ else }}{{ toJson . }}{{ end -}}
{{- else -}}
{{ toJson . }}
{{- end -}}
{{- end -}}

{{- define "concord.tomlKey" -}}
{{- if regexMatch "^[A-Za-z0-9_-]+$" . }}{{ . }}{{ else }}{{ toJson . }}{{ end -}}
{{- end -}}

{{/* What all processes are told of the broker, as JSON. */}}
{{- define "concord.broker" -}}
{{- $nats := .Values.nats -}}
{{- $broker := dict "servers" $nats.servers -}}
{{- if $nats.auth.existingSecret -}}
{{- if $nats.auth.credentialsKey -}}
{{- $_ := set $broker "credentials" (printf "/etc/concord/broker/auth/%s" $nats.auth.credentialsKey) -}}
{{- else -}}
{{- $_ := set $broker "user" (required "nats.auth.existingSecret needs nats.auth.credentialsKey or nats.auth.user" $nats.auth.user) -}}
{{- $_ := set $broker "password_file" (printf "/etc/concord/broker/auth/%s" $nats.auth.passwordKey) -}}
{{- end -}}
{{- end -}}
{{- if $nats.tls.required }}{{ $_ := set $broker "tls_required" true }}{{ end -}}
{{- if $nats.tls.first }}{{ $_ := set $broker "tls_first" true }}{{ end -}}
{{- if $nats.tls.caSecret }}{{ $_ := set $broker "tls_ca" (printf "/etc/concord/broker/ca/%s" $nats.tls.caKey) }}{{ end -}}
{{- if $nats.tls.clientSecret -}}
{{- $_ := set $broker "tls_certificate" "/etc/concord/broker/client/tls.crt" -}}
{{- $_ := set $broker "tls_key" "/etc/concord/broker/client/tls.key" -}}
{{- end -}}
{{- toJson $broker -}}
{{- end -}}

{{/* Refuses secrets among the settings, which are no Secret. Takes (dict "name" "service"), the settings of the service alone. */}}
{{- define "concord.refuseSecrets" -}}
{{- $of := printf "the settings of %s: service" .name -}}
{{- $advice := "is a secret, and the settings are shown by everything that shows pods; mount a Secret with it (secrets)" -}}
{{- $notify := default (dict) .service.notify -}}
{{- if (default (dict) $notify.email).password }}{{ fail (printf "%s.notify.email.password %s and give password_file" $of $advice) }}{{ end -}}
{{- if (default (dict) $notify.webhook).secret }}{{ fail (printf "%s.notify.webhook.secret %s and give secret_file" $of $advice) }}{{ end -}}
{{- if (default (dict) .service.callback).secret }}{{ fail (printf "%s.callback.secret %s and give secret_file" $of $advice) }}{{ end -}}
{{- range $agent := .service.agents -}}
{{- if (default (dict) $agent.http).headers }}{{ fail (printf "%s.agents: each of the http.headers of %s %s and give header_files" $of $agent.agent_id $advice) }}{{ end -}}
{{- end -}}
{{- end -}}

{{/* The settings file of a service: what the chart sets, all services' settings, its own. Takes (dict "root" $ "name" "service"). */}}
{{- define "concord.settings" -}}
{{- $root := .root -}}
{{- $settings := dict "broker" (include "concord.broker" $root | fromJson) "http" (dict "address" "0.0.0.0:8080") "telemetry" (dict "log_format" "json") -}}
{{- with $root.Values.archive -}}
{{- if and .existingClaim .s3.address }}{{ fail "archive.existingClaim and archive.s3.address are two places; choose one" }}{{ end -}}
{{- if .existingClaim }}{{ $_ := set $settings "storage" (dict "archive" "/var/lib/concord/archive") }}{{ end -}}
{{- if .s3.address -}}
{{- $s3 := dict "region" .s3.region "credentials_file" (printf "/etc/concord/archive/auth/%s" .s3.secretKey) -}}
{{- if .s3.endpoint }}{{ $_ := set $s3 "endpoint" .s3.endpoint }}{{ end -}}
{{- if .s3.caSecret }}{{ $_ := set $s3 "ca" (printf "/etc/concord/archive/ca/%s" .s3.caKey) }}{{ end -}}
{{- $_ := set $settings "storage" (dict "archive" .s3.address "s3" $s3) -}}
{{- end -}}
{{- end -}}
{{- $settings = mergeOverwrite $settings (deepCopy $root.Values.settings) (deepCopy .service.settings) -}}
{{- if eq .name "agent-adapter" -}}
{{- $own := default (dict) $settings.service -}}
{{- with $root.Values.agents }}{{ $_ := set $own "agents" . }}{{ end -}}
{{- with $root.Values.callback -}}
{{- if .publicUrl -}}
{{- $_ := set $own "callback" (mergeOverwrite (dict "listen" "0.0.0.0:8090" "public_url" .publicUrl "secret_file" (printf "/etc/concord/callback/%s" .secretKey)) (default (dict) $own.callback)) -}}
{{- end -}}
{{- end -}}
{{- if $own }}{{ $_ := set $settings "service" $own }}{{ end -}}
{{- end -}}
{{- /* Credentials of one's own go before nats.auth. */ -}}
{{- if $settings.broker.credentials }}{{ $_ := set $settings "broker" (omit $settings.broker "user" "password_file") }}{{ end -}}
{{- include "concord.refuseSecrets" (dict "name" .name "service" (default (dict) $settings.service)) -}}
{{- range $section := keys $settings | sortAlpha }}
[{{ $section }}]
{{- $table := index $settings $section }}
{{- range $key := keys $table | sortAlpha }}
{{- $value := include "concord.toml" (index $table $key) }}
{{- if regexMatch "://[^/?#\\s\"]*@" $value }}{{ fail (printf "the settings of %s: in %s.%s is an address with a user name or a password, and the settings are shown by everything that shows pods" $.name $section $key) }}{{ end }}
{{ include "concord.tomlKey" $key }} = {{ $value }}
{{- end }}
{{- end -}}
{{- end -}}

{{/*
The annotation of a pod that its settings file is read from. The settings are part of the template of the pod, and not of a
ConfigMap that all revisions share: so a pod of an earlier revision keeps the settings of its revision.
*/}}
{{- define "concord.settingsAnnotation" -}}
{{- $toml := include "concord.settings" . | trim -}}
{{- if gt (len $toml) 200000 }}{{ fail (printf "the settings of %s are larger than an annotation may be; put prompts and other texts into files (configMaps)" .name) }}{{ end -}}
concord/settings: {{ toYaml $toml }}
{{- end -}}

{{/* Mounts and volumes of what the broker asks for, the archive and the settings file. */}}
{{- define "concord.mounts" -}}
- {name: settings, mountPath: /etc/concord/concord.toml, subPath: concord.toml, readOnly: true}
{{- with .root.Values.nats }}
{{- if .auth.existingSecret }}
- {name: broker-auth, mountPath: /etc/concord/broker/auth, readOnly: true}
{{- end }}
{{- if .tls.caSecret }}
- {name: broker-ca, mountPath: /etc/concord/broker/ca, readOnly: true}
{{- end }}
{{- if .tls.clientSecret }}
- {name: broker-client, mountPath: /etc/concord/broker/client, readOnly: true}
{{- end }}
{{- end }}
{{- if .root.Values.archive.existingClaim }}
- {name: archive, mountPath: /var/lib/concord/archive}
{{- end }}
{{- with .root.Values.archive.s3 }}
{{- if .address }}
- {name: archive-auth, mountPath: /etc/concord/archive/auth, readOnly: true}
{{- if .caSecret }}
- {name: archive-ca, mountPath: /etc/concord/archive/ca, readOnly: true}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "concord.volumes" -}}
- name: settings
  downwardAPI:
    defaultMode: 0444
    items: [{path: concord.toml, fieldRef: {fieldPath: "metadata.annotations['concord/settings']"}}]
{{- with .root.Values.nats }}
{{- if .auth.existingSecret }}
- name: broker-auth
  secret: {secretName: {{ .auth.existingSecret }}, defaultMode: 0440}
{{- end }}
{{- if .tls.caSecret }}
- name: broker-ca
  secret: {secretName: {{ .tls.caSecret }}, defaultMode: 0440}
{{- end }}
{{- if .tls.clientSecret }}
- name: broker-client
  secret: {secretName: {{ .tls.clientSecret }}, defaultMode: 0440}
{{- end }}
{{- end }}
{{- with .root.Values.archive.existingClaim }}
- name: archive
  persistentVolumeClaim: {claimName: {{ . }}}
{{- end }}
{{- with .root.Values.archive.s3 }}
{{- if .address }}
- name: archive-auth
  secret: {secretName: {{ required "archive.s3.address needs archive.s3.existingSecret" .existingSecret }}, defaultMode: 0440}
{{- if .caSecret }}
- name: archive-ca
  secret: {secretName: {{ .caSecret }}, defaultMode: 0440}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Which services have credentials of the broker that are not those of nats.auth: a list as JSON. */}}
{{- define "concord.withOwnCredentials" -}}
{{- $names := list -}}
{{- range $name, $service := include "concord.services" . | fromJson -}}
{{- $broker := mergeOverwrite (dict) (deepCopy (default (dict) $.Values.settings.broker)) (deepCopy (default (dict) $service.settings.broker)) -}}
{{- if $broker.credentials }}{{ $names = append $names $name }}{{ end -}}
{{- end -}}
{{- toJson $names -}}
{{- end -}}

{{/* What is said once where the services have credentials of their own and the command has none; else nothing. */}}
{{- define "concord.commandLacks" -}}
{{- if and (include "concord.withOwnCredentials" . | fromJsonArray) (not .Values.nats.auth.existingSecret) (not .Values.command.credentialsSecret) -}}
the services have credentials of their own and the command has none: command.credentialsSecret names a Secret with those of an operator (concord credentials issue DIR operator:NAME --format secret)
{{- end -}}
{{- end -}}

{{/* Annotations of the pods of the command: the Job of setup, and the test. */}}
{{- define "concord.commandAnnotations" -}}
{{- $settings := dict -}}
{{- with .Values.command.credentialsSecret -}}
{{- $settings = dict "broker" (dict "credentials" (printf "/etc/concord/command/%s" $.Values.command.credentialsKey)) -}}
{{- end -}}
{{- include "concord.settingsAnnotation" (dict "root" . "name" "concord" "service" (dict "settings" $settings)) -}}
{{- with merge (deepCopy .Values.command.podAnnotations) .Values.defaults.podAnnotations }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "concord.commandLabels" -}}
{{ include "concord.labels" . }}
{{- with .root.Values.defaults.podLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* What each container of the command has besides its command line. Takes (dict "root" $), and "mounts" for more of them. */}}
{{- define "concord.commandContainer" -}}
image: {{ include "concord.image" .root }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
{{- with .root.Values.defaults.env }}
env:{{ toYaml . | nindent 2 }}
{{- end }}
resources:{{ toYaml .root.Values.defaults.resources | nindent 2 }}
{{ include "concord.containerSecurity" .root }}
volumeMounts:
  {{- include "concord.mounts" . | nindent 2 }}
  {{- if .root.Values.command.credentialsSecret }}
  - {name: command, mountPath: /etc/concord/command, readOnly: true}
  {{- end }}
{{- end -}}

{{- define "concord.commandVolumes" -}}
{{ include "concord.volumes" . }}
{{- with .root.Values.command.credentialsSecret }}
- name: command
  secret: {secretName: {{ . }}, defaultMode: 0440}
{{- end }}
{{- end -}}

{{/* Where a pod may run. Takes a service, or the defaults. */}}
{{- define "concord.placement" -}}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .nodeSelector }}
nodeSelector:{{ toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:{{ toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity:{{ toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* What every pod says: Pod Security "restricted". */}}
{{- define "concord.podSecurity" -}}
serviceAccountName: {{ include "concord.fullname" . }}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:{{ toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "concord.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end -}}

{{/* The fewest replicas that a service is meant to have. */}}
{{- define "concord.fewest" -}}
{{- if eq .root.Values.scaling.mode "none" }}{{ .service.replicas }}{{ else }}{{ .service.scaling.minReplicas }}{{ end -}}
{{- end -}}

{{- define "concord.streamPrefix" -}}
{{- upper (default "concord" (default (dict) .Values.settings.storage).prefix) -}}
{{- end -}}
