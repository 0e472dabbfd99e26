package lease

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/claimq/claimq/internal/proof"
)

func TestMajorityWall(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		walls  []Wall
		voters int
		want   Wall // 0: fewer than a majority
	}{
		{"alone", []Wall{5}, 1, 5},
		{"the middle of three", []Wall{9, 1, 5}, 3, 5},
		{"the earlier of two", []Wall{9, 5}, 2, 5},
		{"the earlier of two of three", []Wall{9, 5}, 3, 5},
		{"one of three", []Wall{9}, 3, 0},
		{"one of two", []Wall{9}, 2, 0},
		{"the middle of five", []Wall{9, 8, 7, 6, 5}, 5, 7},
		{"the second of four of five", []Wall{9, 8, 7, 6}, 5, 7},
		{"the earliest of three of five", []Wall{9, 8, 7}, 5, 7},
		{"the second of four", []Wall{9, 8, 7, 6}, 4, 7},
		{"two of five", []Wall{9, 8}, 5, 0},
		{"no voters", nil, 0, 0},
	} {
		if got, ok := MajorityWall(test.walls, test.voters); got != test.want || ok != (test.want != 0) {
			t.Errorf("%s: %d, %v; want %d", test.name, got, ok, test.want)
		}
	}
}

// Any voters may answer: while fewer than half of all have a clock that is ahead, the
// majority's time is not ahead of the latest correct one. If all answer, the same is true
// for clocks that are behind.
func TestMajorityWall_minorityWrong(t *testing.T) {
	t.Parallel()
	proof.Check(t, func(t *rapid.T) {
		const right, apart = Wall(1e18), Wall(1e9)
		voters := rapid.IntRange(1, 7).Draw(t, "voters")
		ahead := rapid.IntRange(0, (voters-1)/2).Draw(t, "ahead")
		behind := rapid.IntRange(0, (voters-1)/2-ahead).Draw(t, "behind")
		walls := make([]Wall, voters)
		for i := range walls {
			off := rapid.Int64Range(0, int64(apart)).Draw(t, "off")
			switch {
			case i < ahead:
				off = rapid.Int64Range(0, 1e18).Draw(t, "how far ahead")
			case i < ahead+behind:
				off = -rapid.Int64Range(0, 1e18).Draw(t, "how far behind")
			}
			walls[i] = right + Wall(off)
		}
		walls = rapid.Permutation(walls).Draw(t, "walls")
		read := walls[:rapid.IntRange(0, voters).Draw(t, "read")]
		got, ok := MajorityWall(read, voters)
		switch {
		case ok != (len(read) > voters/2):
			t.Fatalf("%d of %d voters were read: %v", len(read), voters, ok)
		case ok && got > right+apart:
			t.Fatalf("%d of %d clocks are ahead, %d answered: %d ahead of all that are right", ahead, voters, len(read), got-right-apart)
		case len(read) == voters && got < right:
			t.Fatalf("%d of %d clocks are behind, all answered: %d behind all that are right", behind, voters, right-got)
		}
	})
}

func TestReadWall(t *testing.T) {
	t.Parallel()
	w := ReadWall(1000, 300*time.Nanosecond)
	if at := w.At(500 * time.Nanosecond); at != 1200 {
		t.Errorf("read as 1000, it shows %d after 200 ns", at)
	}
}
