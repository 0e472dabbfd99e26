package sqs

import (
	"os/exec"
	"strings"
	"testing"
)

// What a program with Debian's boto3 does, by the Query protocol, through a follower.
func TestBoto(t *testing.T) {
	t.Parallel()
	ctx, cluster := start(t, 3)
	leader, err := cluster.WaitLeader(ctx)
	if err != nil {
		t.Fatal(err)
	}
	node := cluster.Nodes[0]
	if node == leader {
		node = cluster.Nodes[1]
	}
	out, err := exec.CommandContext(ctx, "/usr/bin/python3", "testdata/boto.py", node.URL(), accessID, secret).CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "done" {
		t.Errorf("%v\n%s", err, out)
	}
}
