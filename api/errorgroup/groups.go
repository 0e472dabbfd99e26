package errorgroup

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"

	"github.com/claimq/claimq/fsm/event"
)

// ID identifies a group of failed tasks. It is a hash of the task type and the signature, so every node of the same
// version has the same ids. 0 means no group.
type ID uint64

// IDAllowed describes what ParseID accepts.
const IDAllowed = "the id of a group that GET /api/failures shows, 16 hexadecimal digits in lower case"

const idDigits = 16

// Of returns the group of a task of that type that failed with that error.
func Of[T string | []byte](taskType, err T) ID {
	var room [512]byte
	return idOf(appendSignature(append(append(room[:0], taskType...), 0), err))
}

// Has reports whether a task of that type that failed with that error belongs to the group.
func (id ID) Has(taskType, err []byte) bool { return Of(taskType, err) == id }

// idOf hashes a type, a zero byte, and a signature.
func idOf(of []byte) ID {
	sum := sha256.Sum256(of)
	return max(ID(binary.BigEndian.Uint64(sum[:])), 1)
}

// String returns the id as the API shows it.
func (id ID) String() string {
	digits := strconv.FormatUint(uint64(id), 16)
	return strings.Repeat("0", idDigits-len(digits)) + digits
}

// ParseID is the inverse of ID.String. ok is false for any other text.
func ParseID(text string) (id ID, ok bool) {
	n, err := strconv.ParseUint(text, 16, 64)
	return ID(n), err == nil && n != 0 && ID(n).String() == text
}

const (
	// ExampleMax bounds a group's example, in bytes.
	ExampleMax = 1024
	// IDsMax is the number of tasks that a group names.
	IDsMax = 5
	// groupBytes is the maximum size of a group: its type, signature, example and other fields.
	groupBytes = 128 + SignatureMax + ExampleMax + 512 + 4*Hours
	// Hours is the number of hours for which a group is counted, back from Groups.Now.
	Hours  = 24
	hourMS = 3_600_000
)

// Group is the failed tasks of one type whose errors have one signature.
type Group struct {
	ID              ID
	Type, Signature string
	Example         string        // error of the first task added, cut at ExampleMax
	Count           int           // number of tasks added
	FirstAt, LastAt int64         // when the earliest and the latest of them ended
	IDs             []uint64      // ids of the first tasks added
	ByHour          [Hours]uint32 // how many ended in each hour before Groups.Now, the oldest first
}

// Groups collects failed tasks by group. The zero value is empty. It keeps no memory of its arguments and takes up to
// groupBytes for each group.
type Groups struct {
	Now    int64 // when the hours end; set it before the first Add
	Looked int   // number of tasks added

	groups map[string]*Group // by type, a zero byte, and signature
	name   []byte            // scratch memory of Add
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
	if ago := max(g.Now-at, 0) / hourMS; ago < Hours {
		group.ByHour[Hours-1-ago]++
	}
	if len(group.IDs) < IDsMax {
		group.IDs = append(group.IDs, id)
	}
}

// Bytes returns an upper bound for the memory of the groups.
func (g *Groups) Bytes() int { return len(g.groups) * groupBytes }

// Len returns the number of groups.
func (g *Groups) Len() int { return len(g.groups) }

// Largest returns the n largest groups, largest first. Groups of the same size are ordered by their latest task, then
// by type and signature.
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
