package fsm

import (
	"github.com/claimq/claimq/fsm/command"
)

// forgetMax bounds how many removed tasks and claim requests one Forget forgets.
const forgetMax = 2048

// RememberedBytes estimates the memory of what is remembered of removed tasks and of
// claim requests.
func (m *Machine) RememberedBytes() int64 { return m.rememberedBytes }

func (m *Machine) forgetOldest(c command.Forget) Result {
	early := 0
	for n := 0; n < forgetMax && m.rememberedBytes > c.Bytes; n++ {
		gone, someGone := m.forgettingGone.First()
		request, someRequest := m.forgetting.First()
		at := gone.At
		switch {
		case someGone && (!someRequest || gone.At <= request.At):
			m.forgetGone(gone.ID)
		case someRequest:
			at = request.At
			m.forget(request.ID)
		default:
			return Result{Forgotten: early}
		}
		if at > m.header.Stamp.U {
			early++
		}
	}
	return Result{Forgotten: early}
}
