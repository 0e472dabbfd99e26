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

	"go.yaml.in/yaml/v3"
)

// manifest is the part of a Kubernetes object that the tests look at.
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
		Template            struct {
			Metadata struct{ Annotations map[string]string }
			Spec     struct {
				Containers []struct {
					Args           []string
					ReadinessProbe map[string]any `yaml:"readinessProbe"`
					LivenessProbe  map[string]any `yaml:"livenessProbe"`
					VolumeMounts   []struct {
						MountPath string `yaml:"mountPath"`
					} `yaml:"volumeMounts"`
				}
			}
		}
	}
}

// tool makes one of the tools that have modules of their own.
func tool(t *testing.T, name string) string {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "make", "-s", "-C", "..", "bin/"+name).CombinedOutput(); err != nil {
		t.Fatalf("make bin/%s: %v\n%s", name, err, out)
	}
	path, err := filepath.Abs("../bin/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// render runs helm template with values, and has kubestrict check what comes.
func render(t *testing.T, sets ...string) (objects map[string]manifest, text string, err error) {
	t.Helper()
	args := []string{"template", "q", "helm/claimq", "--namespace", "prod", "--kube-version", "1.30.0"}
	for _, set := range sets {
		args = append(args, "--set", set)
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), tool(t, "helm"), args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, "", fmt.Errorf("%w: %s", err, stderr.String())
	}
	strict := exec.CommandContext(t.Context(), tool(t, "kubestrict"))
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

// secrets are values with which the chart is installed as it should be.
var secrets = [...]string{"joinKey.existingSecret=join", "keys.existingSecret=keys"}

// chart checks the Helm chart: Kubernetes takes what it makes, and nodes take the
// settings that it gives them.
func (p packages) chart(t *testing.T) {
	if out, err := exec.CommandContext(t.Context(), tool(t, "helm"), "lint", "--strict", "--set", "insecure=true", "helm/claimq").CombinedOutput(); err != nil {
		t.Errorf("helm lint: %v\n%s", err, out)
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
		p.checkChart(t, 3, "keys.existingSecret=keys", "tls.http.existingSecret=http", "tls.http.clientCertificates=true", "tls.peer.existingSecret=peer")
	})
	t.Run("more settings", func(t *testing.T) {
		p.checkChart(t, 3, append(secrets[:], "settings.memory_limit=1GiB", "settings.limits.items=10", "persistence.storageClass=fast", "nameOverride=tasks", "service.type=LoadBalancer")...)
	})
	for _, refused := range [][]string{
		{"keys.existingSecret=keys"},    // no secret between nodes
		{"joinKey.existingSecret=join"}, // no keys
		append(secrets[:], "replicas=0"),
		append(secrets[:], "replica=3"),
		append(secrets[:], "settings.node_id=n1"),
		append(secrets[:], "podDisruptionBudget.maxUnavailable=0"),
	} {
		if _, _, err := render(t, refused...); err == nil {
			t.Errorf("the chart takes %q", refused)
		}
	}
}

// checkChart renders the chart, checks what holds for all values, and returns
// the objects.
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
