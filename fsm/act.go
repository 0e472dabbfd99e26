package fsm

func (m *Machine) act(c Act) Result { return Result{} }
