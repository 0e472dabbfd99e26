package bench

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A node that has just started may know that another is there, and not yet where: it is
// asked again.
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
