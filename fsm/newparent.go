package fsm

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// appendNewParent appends the field num, a message; nothing if v is nil.
func appendNewParent(b []byte, num protowire.Number, v *NewParent) []byte {
	if v == nil {
		return b
	}
	mark := len(b)
	b, outer := beginMessage(b, num)
	for i := range v.Steps {
		var start int
		b, start = beginMessage(b, 1)
		b = endLength(appendNewStep(b, &v.Steps[i]), start)
	}
	b = putBool(b, 2, v.ByClaim)
	return endOptional(putBool(b, 3, v.Continue), mark, outer)
}

func appendNewStep(b []byte, s *NewStep) []byte {
	b = putString(b, 1, s.Name)
	b = appendPlaces(b, 2, s.DependsOn)
	mark := len(b)
	b, start := beginMessage(b, 3)
	return endOptional(appendNewTask(b, &s.Task), mark, start)
}

// appendPlaces appends the field num, places in a plan.
func appendPlaces(b []byte, num protowire.Number, places []uint16) []byte {
	for _, place := range places {
		b = putIDElement(b, num, uint64(place))
	}
	return b
}

// newParent reads the field, a message NewParent. What the API refuses is
// refused here, too, as far as Apply relies on it.
func (r *fieldReader) newParent() *NewParent {
	in := fieldReader{rest: r.single()}
	v := &NewParent{}
	for in.next() {
		switch in.num {
		case 1:
			if v.Steps == nil {
				v.Steps = make([]NewStep, 0, min(in.run(), StepsMax))
			}
			in.bound(len(v.Steps), StepsMax)
			one := fieldReader{rest: in.raw()}
			v.Steps = append(v.Steps, decodeNewStep(&one))
			in.within(one.err)
		case 2:
			v.ByClaim = in.bool()
		case 3:
			v.Continue = in.bool()
		default:
			in.unknown()
		}
	}
	if in.err == nil && len(v.Steps) == 0 {
		in.fail("a parent without steps")
	}
	for place := range v.Steps {
		in.checkPlaces(v.Steps[place].DependsOn, place, len(v.Steps))
	}
	if in.err == nil && FindCycle(len(v.Steps), func(place uint16) []uint16 { return v.Steps[place].DependsOn }) != nil {
		in.fail("steps that depend on each other in a circle")
	}
	r.within(in.err)
	return v
}

func decodeNewStep(r *fieldReader) (s NewStep) {
	for r.next() {
		switch r.num {
		case 1:
			s.Name = r.string()
		case 2:
			s.DependsOn = r.place(s.DependsOn)
		case 3:
			in := fieldReader{rest: r.single(), plain: true}
			s.Task = decodeNewTask(&in)
			r.within(in.err)
		default:
			r.unknown()
		}
	}
	return s
}

// place reads the field, one of the ascending places in a plan, and appends it.
func (r *fieldReader) place(places []uint16) []uint16 {
	v := r.idElement()
	switch n := len(places); {
	case v >= StepsMax:
		r.fail("a place that no step has")
	case n > 0 && uint64(places[n-1]) >= v:
		r.fail("places that do not ascend")
	}
	return append(places, uint16(v))
}

// checkPlaces fails if the step at place, of n, depends on itself or on one that
// is not there.
func (r *fieldReader) checkPlaces(dependsOn []uint16, place, n int) {
	for _, on := range dependsOn {
		if int(on) >= n || int(on) == place {
			r.fail("a step depends on one that is not there, or on itself")
		}
	}
}

// bound fails if there are as many elements as there may be, and here is another.
func (r *fieldReader) bound(have, most int) {
	if have >= most {
		r.fail(fmt.Sprintf("more than %d", most))
	}
}
