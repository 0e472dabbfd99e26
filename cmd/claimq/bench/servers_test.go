package bench

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A node that has just started may know another node without its address. It is then asked again.
func TestFindCluster(t *testing.T) {
	t.Parallel()
	answers := []string{
		`{"leader":"","nodes":[{"node_id":"n1","http_addr":"http://one"},{"node_id":"n2","http_addr":"http://two"}]}`,
		`{"leader":"n2","nodes":[{"node_id":"n1","http_addr":""},{"node_id":"n2","http_addr":"http://two"}]}`,
		`{"leader":"n2","nodes":[{"node_id":"n1","http_addr":"http://one"},{"node_id":"n2","http_addr":"http://two"}]}`,
	}
	var asked atomic.Int32
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, answers[min(int(asked.Add(1)), len(answers))-1])
	}))
	defer node.Close()
	leader, nodes, err := findCluster(t.Context(), []string{node.URL})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"http://one", "http://two"}, nodes); d != "" || leader != "http://two" {
		t.Errorf("the leader is %s, nodes (-want +got):\n%s", leader, d)
	}
}

// A member that does not answer does not end a measurement. The result has the usage of the other nodes and says so.
func TestMeasure_memberIsDown(t *testing.T) {
	t.Parallel()
	var cpu atomic.Int32
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := cpu.Add(2)
		fmt.Fprintf(w, "process_cpu_seconds_total %d\nprocess_resident_memory_bytes 7\nclaimq_batch_bytes_sum %d\n", n, 10*n)
	}))
	defer node.Close()
	down := httptest.NewServer(nil)
	down.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	r := &run{cfg: Config{Mode: Submit, Tasks: 1}, stop: cancel}
	rep, err := r.measure(ctx, []string{node.URL, down.URL}, func(context.Context) {
		for cpu.Load() == 0 {
			runtime.Gosched() // asking the nodes means that counting has begun
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if rep.Nodes != 2 || rep.NodesSeen != 1 || rep.ServerCPU != 2 || rep.ServerRSS != 7 || rep.LogBytes != 20 {
		t.Errorf("got %+v", rep)
	}
	var text strings.Builder
	if err := rep.Print(&text); err != nil || !strings.Contains(text.String(), "servers (1 of 2 nodes; the others did not answer): 2.0 s of CPU") {
		t.Errorf("it prints %q, %v", text.String(), err)
	}
}
