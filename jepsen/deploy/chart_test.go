package deploy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// manifest is the part of a Kubernetes object that the tests check.
type manifest struct {
	Kind     string
	Metadata struct{ Name string }
	Data     map[string]string
	Spec     struct {
		Replicas            int
		ServiceName         string `yaml:"serviceName"`
		ClusterIP           string `yaml:"clusterIP"`
		PublishNotReady     bool   `yaml:"publishNotReadyAddresses"`
		MaxUnavailable      int    `yaml:"maxUnavailable"`
		PodManagementPolicy string `yaml:"podManagementPolicy"`
		Ingress             []ingressRule
		PolicyTypes         []string       `yaml:"policyTypes"`
		PodSelector         map[string]any `yaml:"podSelector"`
		Template            struct {
			Metadata struct{ Annotations map[string]string }
			Spec     struct {
				Grace      int `yaml:"terminationGracePeriodSeconds"`
				Containers []struct {
					Image          string
					Args           []string
					ReadinessProbe map[string]any `yaml:"readinessProbe"`
					LivenessProbe  map[string]any `yaml:"livenessProbe"`
					StartupProbe   map[string]any `yaml:"startupProbe"`
					Ports          []struct {
						Name          string
						ContainerPort int `yaml:"containerPort"`
					}
					VolumeMounts []struct {
						MountPath string `yaml:"mountPath"`
					} `yaml:"volumeMounts"`
				}
			}
		}
	}
}

// ingressRule permits incoming connections.
type ingressRule struct {
	From  []map[string]any
	Ports []struct {
		Protocol string
		Port     int
	}
}

// chartTool builds the tool that renders the chart, and returns its path.
func chartTool(t *testing.T) string {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "make", "-s", "-C", "..", "bin/chart").CombinedOutput(); err != nil {
		t.Fatalf("make bin/chart: %v\n%s", err, out)
	}
	path, err := filepath.Abs("../bin/chart")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// render renders the chart with values, and parses the result as Kubernetes does.
func render(t *testing.T, sets ...string) (objects map[string]manifest, text string, err error) {
	t.Helper()
	args := []string{"template", "q", "helm/claimq", "--namespace", "prod", "--kube-version", "1.30.0"}
	for _, set := range sets {
		args = append(args, "--set", set)
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), chartTool(t), args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, "", fmt.Errorf("%w: %s", err, stderr.String())
	}
	strict := exec.CommandContext(t.Context(), chartTool(t), "strict")
	strict.Stdin = bytes.NewReader(stdout.Bytes())
	if out, err := strict.CombinedOutput(); err != nil {
		t.Errorf("with %q: %v\n%s", sets, err, out)
	}
	objects = make(map[string]manifest)
	for d := yaml.NewDecoder(bytes.NewReader(stdout.Bytes())); ; {
		var m manifest
		if err := d.Decode(&m); errors.Is(err, io.EOF) {
			return objects, stdout.String(), nil
		} else if err != nil {
			t.Fatal(err)
		}
		objects[m.Kind+" "+m.Metadata.Name] = m
	}
}

// secrets are values for a proper installation of the chart.
var secrets = [...]string{"joinKey.existingSecret=join", "keys.existingSecret=keys"}

// chart checks the Helm chart: Kubernetes accepts its objects, and nodes accept its
// settings.
func (p packages) chart(t *testing.T) {
	if out, err := exec.CommandContext(t.Context(), chartTool(t), "lint", "--set", "insecure=true", "helm/claimq").CombinedOutput(); err != nil {
		t.Errorf("lint: %v\n%s", err, out)
	}
	t.Run("three nodes", func(t *testing.T) {
		objects := p.checkChart(t, 3, secrets[:]...)
		for name, file := range objects["ConfigMap q-claimq"].Data {
			if !strings.Contains(file, "initial_cluster:") || strings.Contains(file, "join:") {
				t.Errorf("%s does not form the cluster:\n%s", name, file)
			}
		}
	})
	t.Run("two more join", func(t *testing.T) {
		three := p.checkChart(t, 3, secrets[:]...)
		five := p.checkChart(t, 5, append(secrets[:], "replicas=5", "joinOrdinals={1}")...)
		before, after := three["ConfigMap q-claimq"].Data, five["ConfigMap q-claimq"].Data
		for _, i := range []int{0, 2} {
			if name := fmt.Sprintf("q-claimq-%d.yaml", i); before[name] != after[name] {
				t.Errorf("%s changes with more nodes", name)
			}
		}
		for _, i := range []int{1, 3, 4} {
			name := fmt.Sprintf("q-claimq-%d.yaml", i)
			if file := after[name]; strings.Contains(file, "initial_cluster:") || strings.Contains(file, "- "+strings.TrimSuffix(name, ".yaml")+".") {
				t.Errorf("%s does not join the others:\n%s", name, file)
			}
		}
		annotations := func(objects map[string]manifest) string {
			return fmt.Sprint(objects["StatefulSet q-claimq"].Spec.Template.Metadata.Annotations)
		}
		if annotations(three) != annotations(five) {
			t.Error("more nodes restart those that run")
		}
		other := p.checkChart(t, 3, append(secrets[:], "settings.log_level=debug")...)
		if annotations(three) == annotations(other) {
			t.Error("a changed setting restarts nobody")
		}
	})
	t.Run("TLS", func(t *testing.T) {
		objects := p.checkChart(t, 3, "keys.existingSecret=keys", "tls.http.existingSecret=http", "tls.peer.existingSecret=peer")
		if probe := fmt.Sprint(objects["StatefulSet q-claimq"].Spec.Template.Spec.Containers[0].ReadinessProbe); !strings.Contains(probe, "HTTPS") {
			t.Errorf("the probe is %s", probe)
		}
		objects = p.checkChart(t, 3, "keys.existingSecret=keys", "tls.http.existingSecret=http", "tls.http.clientCertificates=true", "tls.peer.existingSecret=peer")
		pod := objects["StatefulSet q-claimq"].Spec.Template.Spec.Containers[0]
		for _, probe := range []map[string]any{pod.StartupProbe, pod.LivenessProbe, pod.ReadinessProbe} {
			if text := fmt.Sprint(probe["httpGet"]); !strings.Contains(text, "port:health") || !strings.Contains(text, "scheme:HTTP ") && !strings.HasSuffix(text, "scheme:HTTP]") {
				t.Errorf("where clients need certificates a probe is %v", probe)
			}
		}
		if file := objects["ConfigMap q-claimq"].Data["q-claimq-0.yaml"]; !strings.Contains(file, "health_addr: 0.0.0.0:7402\n") || !strings.Contains(fmt.Sprint(pod.Ports), "{health 7402}") {
			t.Errorf("probes without a certificate have no port: %v\n%s", pod.Ports, file)
		}
	})
	t.Run("more settings", func(t *testing.T) {
		p.checkChart(t, 3, append(secrets[:], "settings.memory_limit=1GiB", "settings.limits.items=10", "persistence.storageClass=fast", "nameOverride=tasks", "zoneData.existingSecret=zones", "service.type=LoadBalancer")...)
	})
	t.Run("image by digest", func(t *testing.T) {
		digest := "sha256:" + strings.Repeat("0a", 32)
		objects := p.checkChart(t, 3, append(secrets[:], "image.tag=v1", "image.digest="+digest)...)
		if image := objects["StatefulSet q-claimq"].Spec.Template.Spec.Containers[0].Image; image != "claimq:v1@"+digest {
			t.Errorf("the image is %s", image)
		}
	})
	t.Run("drain", func(t *testing.T) {
		for _, seconds := range []int{0, 10, 60} {
			objects := p.checkChart(t, 3, append(secrets[:], fmt.Sprintf("drainSeconds=%d", seconds))...)
			if file := objects["ConfigMap q-claimq"].Data["q-claimq-0.yaml"]; !strings.Contains(file, fmt.Sprintf("drain_time: %ds\n", seconds)) {
				t.Errorf("nodes drain otherwise than %d s:\n%s", seconds, file)
			}
			// A stop takes up to 10 s twice, and 5 s for everything else.
			if grace := objects["StatefulSet q-claimq"].Spec.Template.Spec.Grace; grace < seconds+25 {
				t.Errorf("pods that drain for %d s are killed after %d s", seconds, grace)
			}
		}
	})
	t.Run("network policy", p.networkPolicy)
	for _, refused := range [][]string{
		{"keys.existingSecret=keys"},    // no secret between nodes
		{"joinKey.existingSecret=join"}, // no keys
		append(secrets[:], "replicas=0"),
		append(secrets[:], "drainSeconds=-1"),
		append(secrets[:], "drainSeconds=301"),
		append(secrets[:], "replica=3"),
		append(secrets[:], "settings.node_id=n1"),
		append(secrets[:], "podDisruptionBudget.maxUnavailable=0"),
		append(secrets[:], "image.digest=sha256:0a"),
		append(secrets[:], "networkPolicy.api[0].namespace=monitoring"),
		append(secrets[:], "networkPolicy.clients[0].podSelector.matchLabels.a=b"),
	} {
		if _, _, err := render(t, refused...); err == nil {
			t.Errorf("the chart takes %q", refused)
		}
	}
}

// networkPolicy checks who reaches the pods: the release's own pods reach the peer port,
// and everybody, or those in the values, the API.
func (p packages) networkPolicy(t *testing.T) {
	labels := map[string]any{"matchLabels": map[string]any{"app.kubernetes.io/name": "claimq", "app.kubernetes.io/instance": "q"}}
	own := []map[string]any{{"podSelector": labels}}
	named := func(namespace string) map[string]any {
		return map[string]any{"namespaceSelector": map[string]any{"matchLabels": map[string]any{"n": namespace}}}
	}
	for _, tc := range []struct {
		sets       []string
		peers, api []map[string]any
	}{
		{nil, own, nil},
		{
			[]string{"networkPolicy.api[0].namespaceSelector.matchLabels.n=work", "networkPolicy.api[1].namespaceSelector.matchLabels.n=monitoring", "networkPolicy.peers[0].ipBlock.cidr=10.0.0.0/8"},
			append(own, map[string]any{"ipBlock": map[string]any{"cidr": "10.0.0.0/8"}}),
			[]map[string]any{named("work"), named("monitoring")},
		},
	} {
		policy := p.checkChart(t, 3, append(secrets[:], tc.sets...)...)["NetworkPolicy q-claimq"].Spec
		if len(policy.Ingress) != 2 || !slices.Equal(policy.PolicyTypes, []string{"Ingress"}) || !cmp.Equal(policy.PodSelector, labels) {
			t.Fatalf("with %q the policy is %+v", tc.sets, policy)
		}
		for i, want := range []struct {
			port int
			from []map[string]any
		}{{7401, tc.peers}, {7400, tc.api}} {
			rule := policy.Ingress[i]
			if d := cmp.Diff(want.from, rule.From); d != "" || len(rule.Ports) != 1 || rule.Ports[0].Port != want.port || rule.Ports[0].Protocol != "TCP" {
				t.Errorf("with %q port %d is open to %+v", tc.sets, want.port, rule)
			}
		}
	}
	if objects := p.checkChart(t, 3, append(secrets[:], "networkPolicy.enabled=false")...); objects["NetworkPolicy q-claimq"].Kind != "" {
		t.Error("there is a policy though it is not enabled")
	}
}

// checkChart renders the chart, checks what must hold for all values, and returns the
// objects.
func (p packages) checkChart(t *testing.T, nodes int, sets ...string) map[string]manifest {
	t.Helper()
	objects, text, err := render(t, sets...)
	if err != nil {
		t.Fatal(err)
	}
	name := "q-claimq"
	if slices.Contains(sets, "nameOverride=tasks") {
		name = "q-tasks"
	}
	set, peers := objects["StatefulSet "+name].Spec, objects["Service "+name+"-peers"].Spec
	if set.Replicas != nodes || set.ServiceName != name+"-peers" || set.PodManagementPolicy != "Parallel" || len(set.Template.Spec.Containers) != 1 {
		t.Errorf("the StatefulSet is\n%s", text)
	}
	if peers.ClusterIP != "None" || !peers.PublishNotReady || objects["PodDisruptionBudget "+name].Spec.MaxUnavailable != 1 || objects["Service "+name].Kind == "" {
		t.Errorf("the services and the budget are\n%s", text)
	}
	pod := set.Template.Spec.Containers[0]
	if strings.Join(pod.Args, " ") != "server --config /etc/claimq/config/$(POD_NAME).yaml" || pod.ReadinessProbe == nil || pod.LivenessProbe == nil {
		t.Errorf("the container is %+v", pod)
	}
	files := objects["ConfigMap "+name].Data
	if len(files) != nodes {
		t.Errorf("there are %d configuration files for %d nodes", len(files), nodes)
	}
	mounted := func(path string) bool {
		for _, m := range pod.VolumeMounts {
			if strings.HasPrefix(path, m.MountPath) {
				return true
			}
		}
		return false
	}
	for i := range nodes {
		node := fmt.Sprintf("%s-%d", name, i)
		content := files[node+".yaml"]
		for word := range strings.FieldsSeq(content) {
			if strings.HasPrefix(word, "/") && !mounted(word) {
				t.Errorf("%s names %s, where nothing is mounted", node, word)
			}
		}
		if !strings.Contains(content, "node_id: "+node+"\n") {
			t.Errorf("%s has the file\n%s", node, content)
		}
		path := filepath.Join(t.TempDir(), node+".yaml")
		content = strings.ReplaceAll(content, "/etc/claimq/keys/keys.yaml", noKeys(t))
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		p.checkSettings(t, nil, "--config", path)
	}
	return objects
}
