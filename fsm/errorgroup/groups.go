package errorgroup

import (
	"cmp"
	"slices"
	"strings"

	"github.com/claimq/claimq/fsm/event"
)

const (
	// ExampleMax bounds a group's example, in bytes.
	ExampleMax = 1024
	// IDsMax is how many tasks a group names.
	IDsMax = 5
	// groupBytes is what one takes at most: its type, its signature and its example, and what
	// stands beside them.
	groupBytes = 128 + SignatureMax + ExampleMax + 512
)

// Group is the failed tasks of one type whose errors have one signature.
type Group struct {
	ID              ID
	Type, Signature string
	Example         string   // the error of the first one added, cut at ExampleMax
	Count           int      // of the tasks added
	FirstAt, LastAt int64    // when the earliest and the latest of them ended
	IDs             []uint64 // of the first ones added
}

// Groups adds failed tasks up. The zero value has none. It keeps no memory that it is
// given, and takes up to groupBytes for each group.
type Groups struct {
	Looked int // how many tasks were added

	groups map[string]*Group // by type, a zero byte, and signature
	name   []byte            // memory of Add
}

// Add adds a task that failed with that error and ended at that time.
func (g *Groups) Add(taskType, err []byte, id uint64, at int64) {
	g.Looked++
	g.name = appendSignature(append(append(g.name[:0], taskType...), 0), err)
	group := g.groups[string(g.name)]
	if group == nil {
		if g.groups == nil {
			g.groups = make(map[string]*Group)
		}
		name := string(g.name)
		group = &Group{
			ID: idOf(g.name), Type: name[:len(taskType)], Signature: name[len(taskType)+1:],
			Example: event.Cut(string(err[:min(len(err), ExampleMax+1)]), ExampleMax), FirstAt: at, LastAt: at,
		}
		g.groups[name] = group
	}
	group.Count++
	group.FirstAt, group.LastAt = min(group.FirstAt, at), max(group.LastAt, at)
	if len(group.IDs) < IDsMax {
		group.IDs = append(group.IDs, id)
	}
}

// Bytes is what the groups take at most.
func (g *Groups) Bytes() int { return len(g.groups) * groupBytes }

// Len returns how many groups there are.
func (g *Groups) Len() int { return len(g.groups) }

// Largest returns the n largest groups, the largest first; of equal ones that which has
// the latest task, then by type and signature.
func (g *Groups) Largest(n int) []*Group {
	all := make([]*Group, 0, len(g.groups))
	for _, group := range g.groups {
		all = append(all, group)
	}
	slices.SortFunc(all, func(a, b *Group) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(b.LastAt, a.LastAt), strings.Compare(a.Type, b.Type), strings.Compare(a.Signature, b.Signature))
	})
	return all[:min(len(all), n)]
}
