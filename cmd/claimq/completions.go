package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/cmd/claimq/term"
	"github.com/claimq/claimq/fsm/event"
)

// argumentValues returns the completions for the arguments of commands, by path. Other commands take no arguments, or
// arbitrary ones.
func argumentValues() map[string]values {
	finalizes := at(tasksThat(isParent, "running"))
	return map[string]values{
		"submit":               at(taskTypes),
		"complete":             at(tasks("claimed")),
		"fail":                 at(tasks("claimed")),
		"extend":               at(tasks("claimed")),
		"release":              at(tasks("claimed")),
		"retry":                at(tasks("failed", "cancelled", "claimed", "scheduled")),
		"cancel":               at(tasks("pending", "scheduled", "blocked", "claimed", "running")),
		"update":               at(tasks("pending", "scheduled", "blocked")),
		"get":                  at(tasks()),
		"delete":               at(tasks("failed", "cancelled", "completed")),
		"steps":                at(tasksThat(isParent, "running", "failed", "cancelled", "completed")),
		"why":                  at(tasks("pending", "scheduled", "blocked", "running")),
		"events":               at(tasks()),
		"finalize":             at(tasksThat(waitsForProcessor, "running")),
		"finalization claim":   finalizes,
		"finalization extend":  finalizes,
		"finalization release": finalizes,
		"finalization show":    at(tasksThat(isParent, "running", "failed", "cancelled", "completed")),
		"type show":            at(taskTypes),
		"type set":             at(taskTypes),
		"schedule set":         at(schedules, taskTypes),
		"schedule get":         at(schedules),
		"schedule delete":      at(schedules),
		"cluster remove":       at(members(anyMember)),
		"cluster promote":      at(members(isNonvoter)),
		"cluster demote":       at(members(isVoter)),
		"cluster transfer":     at(members(mayLead)),
	}
}

// takesFiles reports whether the command's arguments are files, or another command.
func takesFiles(path string) bool {
	switch path {
	case "batch", "snapshot save", "snapshot inspect", "snapshot restore", "work":
		return true
	}
	return false
}

// flagValues returns the completions for flags by name, for all commands except those in commandFlagValues.
func flagValues(a *term.App) map[string]cobra.CompletionFunc {
	return map[string]cobra.CompletionFunc{
		"endpoint":        complete(a, endpoints),
		"type":            complete(a, taskTypes),
		"worker":          complete(a, workers),
		"parent":          complete(a, tasksThat(isParent, "running", "failed", "cancelled", "completed")),
		"output":          fixed("table", "json"),
		"status":          fixed("pending", "scheduled", "blocked", "claimed", "running", "completed", "failed", "cancelled"),
		"event":           fixed(eventNames()...),
		"role":            fixed("reader\tGETs", "producer\tsubmit, change, cancel, retry, delete, and GETs", "worker\tclaim, settle, finalization, and GETs", "operator\teverything"),
		"unique":          fixed("exists\twhile the task exists", "active\tuntil it ends"),
		"sort-by":         fixed("priority", "created_at", "random"),
		"sort-order":      fixed("asc", "desc"),
		"overlap":         fixed("skip", "allow"),
		"catch-up":        fixed("one", "skip"),
		"outcome":         fixed("completed", "failed"),
		"finalize":        fixed("auto\tit ends with its last step", "claim\ta processor ends it"),
		"on-step-failure": fixed("fail\tthe other steps are cancelled", "continue\tonly those that depend on it"),
		"mode":            fixed("submit", "drain", "lifecycle", "chain", "latency"),
		"log-level":       fixed("trace", "debug", "info", "warn", "error"),
		"log-format":      fixed("text", "json"),
	}
}

// commandFlagValues returns the completions for flags of single commands, by path and name.
func commandFlagValues(a *term.App) map[string]cobra.CompletionFunc {
	all := map[string]cobra.CompletionFunc{"claim --output": fixed("table", "json", "env")}
	all["types --order"] = fixed("name", "oldest", "submitted_per_s", "completed_per_s", "failed_per_s", "pending", "scheduled", "blocked", "claimed", "running", "completed", "failed", "cancelled")
	for _, settling := range []string{"complete", "fail", "extend", "release"} {
		all[settling+" --worker"] = complete(a, holder)
		all[settling+" --token"] = complete(a, holdersToken)
	}
	all["retry --token"] = complete(a, holdersToken)
	return all
}

// eventNames returns the names of the trail's events.
func eventNames() (names []string) {
	for kind := range event.Kind(255) {
		if name := kind.String(); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// addCompletions sets the completion of every command and flag below root, because by default the shell would offer
// files.
func addCompletions(a *term.App, root *cobra.Command) error {
	arguments, flags, commandFlags := argumentValues(), flagValues(a), commandFlagValues(a)
	var errs []error
	term.EachCommand(root, func(cmd *cobra.Command, path string) {
		switch fn, ok := arguments[path]; {
		case ok:
			cmd.ValidArgsFunction = complete(a, fn)
		case cmd.ValidArgs == nil && !takesFiles(path):
			cmd.ValidArgsFunction = cobra.NoFileCompletions
		}
		for _, f := range term.FlagsOf(cmd) {
			fn := commandFlags[path+" --"+f.Name]
			if fn == nil {
				fn = flags[f.Name]
			}
			switch {
			case f.NoOptDefVal != "": // takes no value
			case strings.HasSuffix(f.Name, "dir"):
				errs = append(errs, cmd.MarkFlagDirname(f.Name))
			case isFileFlag(f.Name):
			case fn == nil:
				errs = append(errs, cmd.RegisterFlagCompletionFunc(f.Name, cobra.NoFileCompletions))
			default:
				errs = append(errs, cmd.RegisterFlagCompletionFunc(f.Name, fn))
			}
		}
	})
	return errors.Join(errs...)
}

// isFileFlag reports whether a flag of that name takes the name of a file.
func isFileFlag(name string) bool {
	return strings.HasSuffix(name, "file") || name == "config" || name == "steps" || name == "cpu-profile"
}
