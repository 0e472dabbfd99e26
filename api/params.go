package api

import (
	"strconv"

	"github.com/claimq/claimq/api/bound"
	"github.com/claimq/claimq/api/callbody"
	"github.com/claimq/claimq/api/exchange"
	"github.com/claimq/claimq/api/refuse"
)

// readParam reads a parameter of a call.
type readParam = func(p exchange.Param) *refuse.Refusal

func badParam(name, allowed string) *refuse.Refusal {
	return refuse.Param(name, "Invalid "+name+": must be "+allowed)
}

// parsedParam sets v to the parsed parameter; allowed describes the valid values.
func parsedParam[T any](v *T, allowed string, parse func(text string) (T, bool)) readParam {
	return func(p exchange.Param) *refuse.Refusal {
		var ok bool
		if *v, ok = parse(p.Value); !ok {
			return badParam(p.Name, allowed)
		}
		return nil
	}
}

// textParam sets text to the parameter if it is valid.
func textParam(text *string, allowed string, valid func(text string) bool) readParam {
	return parsedParam(text, allowed, func(s string) (string, bool) { return s, valid(s) })
}

// typeParam sets name to a parameter that is a task type.
func typeParam(name *string) readParam {
	return textParam(name, bound.TaskTypeAllowed, bound.ValidTaskType[string])
}

// holderParam sets id to a parameter that names a worker or a processor.
func holderParam(id *string) readParam {
	return func(p exchange.Param) *refuse.Refusal {
		if *id = p.Value; !bound.ValidProcessorID(p.Value) {
			return callbody.RefuseHolderID(p.Name)
		}
		return nil
	}
}

// createdParam sets ms to a time; before says that it is an upper bound.
func createdParam(ms *int64, before bool) readParam {
	return parsedParam(ms, bound.CreatedAllowed, func(text string) (int64, bool) { return callbody.ParseCreated(text, before) })
}

// countParam sets n to a parameter that is an integer from 1 to most.
func countParam(n *int, most int) readParam {
	return func(p exchange.Param) *refuse.Refusal {
		count, ok := bound.ParseInteger(p.Value, 1, int64(most))
		if !ok {
			return badParam(p.Name, "an integer from 1 to "+strconv.Itoa(most))
		}
		*n = int(count)
		return nil
	}
}
