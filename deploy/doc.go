// Package deploy contains the files that install a claimq cluster (systemd, compose, helm;
// ../Dockerfile; dist builds the archives of a release) and monitor it: a dashboard for Grafana
// (grafana/claimq.json), alert rules for Prometheus (prometheus/alerts.yml, with an example of a
// configuration), and KEDA (keda). It has no code of its own. Its tests check the monitoring, and
// docs/metrics.md, against the metrics of three real nodes, and the installation against systemd,
// Helm, Kubernetes and the real binary.
package deploy
