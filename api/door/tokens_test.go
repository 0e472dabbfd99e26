package door

import (
	"strings"
	"testing"
)

func TestSubjectName(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	long := strings.Repeat("a", 64)
	for _, text := range []string{"alice", "a@b.c", "a_b", "a b", "a/b", "a:b", "a\x00b", "é", "ü", long, long + "a", long + "b", "a_b~", "~", " "} {
		name := subjectName(text)
		if other, ok := seen[name]; ok || len(name) > len(subjectPrefix)+subjectNameMax || KeyNamePattern.MatchString(name) {
			t.Errorf("%q is %q, as %q is", text, name, other)
		}
		seen[name] = text
	}
	if got := subjectName("alice"); got != "oidc:alice" {
		t.Error(got)
	}
}
