package errorgroup

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Users keep ids of groups: a change of them is told in the CHANGELOG.
func TestOf_ids(t *testing.T) {
	t.Parallel()
	ids := map[string]bool{}
	for _, c := range []struct{ taskType, err, want string }{
		{"mail", "", "06559b59e28b4a3a"},
		{"mail", "timeout after 3000 ms", "b3a41043fcf58a75"},
		{"mail", "timeout after 17 ms\nstack", "b3a41043fcf58a75"},
		{"post", "timeout after 3000 ms", "e117e11162d31935"},
	} {
		got := Of(c.taskType, c.err)
		if got.String() != c.want {
			t.Errorf("type %s, error %q: group %s, want %s", c.taskType, c.err, got, c.want)
		}
		if back, ok := ParseID(got.String()); !ok || back != got {
			t.Errorf("%s is read as %s, %v", got, back, ok)
		}
		ids[got.String()] = true
	}
	if len(ids) != 3 {
		t.Errorf("there are %d groups, want 3", len(ids))
	}
}

func TestParseID_RefusesWhatIsNone(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "0", strings.Repeat("0", 16), "3F2a9c0d1e4b5a67", "3f2a9c0d1e4b5a6", "3f2a9c0d1e4b5a678", "3f2a9c0d1e4b5a6g"} {
		if id, ok := ParseID(text); ok {
			t.Errorf("%q is read as %s", text, id)
		}
	}
}

func TestGroups_AddUp(t *testing.T) {
	t.Parallel()
	g := Groups{Now: 24*hourMS + 395}
	add := func(taskType, err string, id uint64, at int64) {
		room := []byte(err)
		g.Add([]byte(taskType), room, id, at)
		for i := range room {
			room[i] = '?' // it may have kept nothing of it
		}
	}
	long := strings.Repeat("ä", ExampleMax)
	hours := func(first, last uint32) (h [Hours]uint32) {
		h[0], h[Hours-1] = first, last
		return h
	}
	add("mail", "timeout after 12 ms", 20, 500)
	add("post", "timeout after 12 ms", 19, 500)
	add("mail", long, 18, 450)
	for id := range uint64(6) {
		add("mail", "timeout after 7 ms", 10-id, 400-int64(id))
	}
	add("post", "timeout after 3 ms", 8, g.Now-hourMS+1)
	add("post", "timeout after 3 ms", 7, g.Now+5) // by a clock that was set back
	want := []*Group{
		{
			ID: Of("mail", "timeout after 12 ms"), Type: "mail", Signature: "timeout after <n> ms", Example: "timeout after 12 ms",
			Count: 7, FirstAt: 395, LastAt: 500, IDs: []uint64{20, 10, 9, 8, 7}, ByHour: hours(6, 0),
		},
		{
			ID: Of("post", "timeout after 12 ms"), Type: "post", Signature: "timeout after <n> ms", Example: "timeout after 12 ms",
			Count: 3, FirstAt: 500, LastAt: g.Now + 5, IDs: []uint64{19, 8, 7}, ByHour: hours(1, 2),
		},
		{
			ID: Of("mail", long), Type: "mail", Signature: strings.Repeat("ä", SignatureMax/2), Example: long[:ExampleMax],
			Count: 1, FirstAt: 450, LastAt: 450, IDs: []uint64{18}, ByHour: hours(1, 0),
		},
	}
	if diff := cmp.Diff(want, g.Largest(10)); diff != "" || g.Len() != 3 || g.Looked != 11 {
		t.Errorf("%d groups of %d tasks (-want +got):\n%s", g.Len(), g.Looked, diff)
	}
	if diff := cmp.Diff(want[:2], g.Largest(2)); diff != "" {
		t.Errorf("the largest two (-want +got):\n%s", diff)
	}
}
