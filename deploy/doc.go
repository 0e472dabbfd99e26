// Package deploy holds what watches a claimq cluster: a dashboard for Grafana
// (grafana/claimq.json) and alert rules for Prometheus (prometheus/alerts.yml, with
// an example of a configuration). It has no code; its tests hold all of it, and
// docs/metrics.md, against what three nodes really tell.
package deploy
