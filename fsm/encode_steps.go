package fsm

import "google.golang.org/protobuf/encoding/protowire"

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

func appendFinalize(b []byte, c *Finalize) []byte {
	b = putID(b, 1, c.ID)
	b = putString(b, 2, c.ProcessorID)
	b = putID(b, 3, c.Token)
	b = putBool(b, 4, c.Failed)
	b = putBytes(b, 5, c.Result)
	return putString(b, 6, c.Error)
}
