package fsm

import "pgregory.net/rapid"

// actsCommands has a command of each type that knows a field of level 5, with
// every field set. Golden files hold them, so they do not change.
func actsCommands() []Command {
	setType := lifeCommands()[8].(SetType)
	setType.By = "deploy"
	setSchedule := sightCommands()[4].(SetSchedule)
	setSchedule.By = "deploy"
	setNode := firstCommands()[12].(SetNode)
	setNode.Node.Nonvoter = true
	return []Command{
		setType,
		setSchedule,
		DeleteSchedule{Name: "nightly", By: "deploy"},
		setNode,
		Tell{Kind: EventLeadershipTransferred, By: "deploy", What: "to n2"},
	}
}

// drawTell draws a command that appeared at level 5.
func drawTell(t *rapid.T) Tell {
	str := rapid.String()
	return Tell{
		Kind: EventKind(rapid.Uint8Range(0, uint8(eventLast)).Draw(t, "kind")), By: str.Draw(t, "by"), What: str.Draw(t, "what"),
	}
}
