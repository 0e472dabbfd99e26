package fsm

import "github.com/claimq/claimq/fsm/wire"

// Forget forgets what is remembered of removed tasks and of claim requests before its
// time, a bounded number: those whose time would come first, until all that is
// remembered takes no more than Bytes by the machine's estimate. A claim request that
// has a claim which lives stays.
type Forget struct{ Bytes int64 }

func (Forget) kind() kind                           { return kindForget }
func (Forget) about() About                         { return About{} }
func (c Forget) applyTo(m *Machine) (Result, error) { return m.forgetOldest(c), nil }

// forgetMax bounds how many removed tasks and claim requests one Forget forgets.
const forgetMax = 2048

// RememberedBytes estimates the memory of what is remembered of removed tasks and of
// claim requests.
func (m *Machine) RememberedBytes() int64 { return m.rememberedBytes }

func (m *Machine) forgetOldest(c Forget) Result {
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

func (c Forget) appendBody(b []byte) []byte { return wire.PutInt(b, 1, c.Bytes) }

func (Forget) decode(r fieldReader) (Command, error) {
	var c Forget
	for r.Next() {
		switch r.Num {
		case 1:
			c.Bytes = r.Int64()
		default:
			r.Unknown()
		}
	}
	return c, r.Err
}
