package index

import "iter"

// Ends orders the records with one kind of end by time.
type Ends struct {
	Own    Timeline // removed on their own
	Others Timeline // removed together with another record
}

// NewEnds returns an empty index.
func NewEnds() Ends { return Ends{NewTimeline(), NewTimeline()} }

// Latest yields the moments of both, from from backwards, latest first.
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
