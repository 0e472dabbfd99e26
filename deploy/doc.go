// Package deploy holds what installs a claimq cluster (systemd, compose, helm;
// ../Dockerfile; dist makes the archives of a release) and what watches it: a
// dashboard for Grafana (grafana/claimq.json), alert rules for Prometheus
// (prometheus/alerts.yml, with an example of a configuration), and KEDA (keda). It has no code; its
// tests hold what watches, and docs/metrics.md, against what three nodes really
// tell, and what installs against systemd, Helm, Kubernetes and the real binary.
package deploy
