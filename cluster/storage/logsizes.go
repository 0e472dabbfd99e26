package storage

import "sort"

// logSizeStep is how many bytes of log lie between two marks of logSizes.
const logSizeStep = 64 << 10

// logSizes knows about how many bytes the entries behind an index have, from a
// mark every 64 KiB of log: 16 bytes each, so a log of 1 GiB needs 256 KiB.
//
// Invariant: marks grow strictly in index, and in total.
type logSizes struct {
	total int64 // bytes of all entries ever added, less those cut off the end
	marks []logSizeMark
}

// logSizeMark says that the entries up to and including index sum up to total.
type logSizeMark struct {
	index uint64
	total int64
}

// add counts the entry at index. One that takes the place of another is counted
// again, until the end of the log is cut off below it.
func (s *logSizes) add(index uint64, size int64) {
	s.total += size
	n := len(s.marks)
	if n == 0 || index > s.marks[n-1].index && s.total-s.marks[n-1].total >= logSizeStep {
		s.marks = append(s.marks, logSizeMark{index, s.total})
	}
}

// after returns the bytes of entries above index, up to a step and an entry too
// many.
func (s *logSizes) after(index uint64) int64 {
	i := sort.Search(len(s.marks), func(i int) bool { return s.marks[i].index > index })
	if i == 0 {
		return s.total - s.base()
	}
	return s.total - s.marks[i-1].total
}

// base is the total at the oldest mark, less what that mark's own entries may
// have had: nothing is known below it, so a step is assumed.
func (s *logSizes) base() int64 {
	if len(s.marks) == 0 {
		return s.total
	}
	return max(0, s.marks[0].total-logSizeStep)
}

// deleteRange forgets what is below first or above last, the bounds of the log
// after a deletion; 0 and 0 of an empty one.
func (s *logSizes) deleteRange(first, last uint64) {
	end := sort.Search(len(s.marks), func(i int) bool { return s.marks[i].index > last })
	if end < len(s.marks) {
		s.marks = s.marks[:end]
		s.total = 0
		if end > 0 {
			s.total = s.marks[end-1].total
		}
	}
	start := sort.Search(len(s.marks), func(i int) bool { return s.marks[i].index >= first })
	// The mark below the first entry is where the counting begins.
	if start > 1 {
		s.marks = append([]logSizeMark(nil), s.marks[start-1:]...)
	}
}
