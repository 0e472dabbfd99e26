// Package deploy checks the files of claimq's folder deploy: those that install a cluster
// (systemd, compose, helm, and the Dockerfile) against systemd, Helm, Kubernetes and the real
// binary; those that monitor it (the dashboard, the alert rules, KEDA), and docs/metrics.md,
// against the metrics of three real nodes. In its folder, dist builds the archives of a release.
package deploy
