package index

import "iter"

// Ends is an index of the records that came to one kind of end, by when.
type Ends struct {
	Own    Timeline // those that are removed each by itself
	Others Timeline // those that are removed with another
}

// NewEnds returns an empty one.
func NewEnds() Ends { return Ends{NewTimeline(), NewTimeline()} }

// Latest yields the moments of both that are not behind from, the latest first.
func (e Ends) Latest(from Moment) iter.Seq[Moment] {
	return func(yield func(Moment) bool) {
		own, others := e.Own.Descend(from), e.Others.Descend(from)
		for {
			m, ok := own.Peek()
			walk := &own
			if other, some := others.Peek(); some && (!ok || other.Compare(m) > 0) {
				m, ok, walk = other, true, &others
			}
			if !ok || !yield(m) {
				return
			}
			walk.Next()
		}
	}
}
