package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/cmd/claimq/cli"
	"github.com/claimq/claimq/cmd/claimq/session"
	"github.com/claimq/claimq/cmd/claimq/term"
)

const (
	// completeTimeout limits how long a press of the tab key waits for the server.
	completeTimeout = time.Second
	// completeMax bounds the offered tasks of a status.
	completeMax = 100
)

// values returns the completions for a place of the command line, each optionally with a description after a tab.
// args are the arguments before it.
type values func(c *completer, args []string) []string

// completer asks the server for values. If it fails, it offers nothing; the user sees no error.
type completer struct {
	ctx context.Context
	s   session.Talk
}

// complete makes a cobra function of fn, which asks a node named by the command's flags or the variables. It keeps
// only values that begin with what was typed.
func complete(a *term.App, fn values) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		var found []string
		f := session.Flags{Timeout: completeTimeout}
		if readNodeFlags(a, cmd, &f) != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completeTimeout)
		defer cancel()
		_ = session.With(a, &f, func(s session.Talk) error {
			found = fn(&completer{ctx: ctx, s: s}, args)
			return nil
		})
		found = slices.DeleteFunc(found, func(value string) bool { return !strings.HasPrefix(value, toComplete) })
		return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

// readNodeFlags reads the nodes' addresses from what has been typed, or from the variables, even for a command
// without these flags.
func readNodeFlags(a *term.App, cmd *cobra.Command, f *session.Flags) error {
	own := pflag.NewFlagSet("nodes", pflag.ContinueOnError)
	f.AddNodeFlags(own)
	err := term.SetFromVariables(a, own)
	own.VisitAll(func(flag *pflag.Flag) {
		typed := cmd.Flags().Lookup(flag.Name)
		if typed == nil || !typed.Changed {
			return
		}
		if list, ok := typed.Value.(pflag.SliceValue); ok {
			err = flag.Value.(pflag.SliceValue).Replace(list.GetSlice())
			return
		}
		err = flag.Value.Set(typed.Value.String())
	})
	file := cmd.Flags().Lookup("api-key-file")
	f.OneKey(file != nil && file.Changed)
	return err
}

// get decodes the answer to a GET, and reports whether there was one.
func (c *completer) get(path string, answer any) bool {
	body, err := c.s.Client.Do(c.ctx, client.Request{Method: http.MethodGet, Path: path})
	return err == nil && json.Unmarshal(body, answer) == nil
}

// described is a value with its description.
func described(value, about string) string { return value + "\t" + term.Printable(about) }

// fixed offers words, each optionally with a description after a tab.
func fixed(words ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveKeepOrder)
}

// at offers the values for the argument's position, and nothing after the last.
func at(places ...values) values {
	return func(c *completer, args []string) []string {
		if len(args) >= len(places) {
			return nil
		}
		return places[len(args)](c, args)
	}
}

// tasks offers the ids of tasks in these statuses, or of all tasks, the newest first.
func tasks(statuses ...string) values {
	return tasksThat(func(*wire.Task) bool { return true }, statuses...)
}

// tasksThat is tasks, but only those that ok accepts.
func tasksThat(ok func(*wire.Task) bool, statuses ...string) values {
	if len(statuses) == 0 {
		statuses = []string{""}
	}
	return func(c *completer, _ []string) []string {
		var found []string
		for _, status := range statuses {
			q := cli.Query(&wire.Filter{Status: status})
			q.Set("limit", strconv.Itoa(completeMax))
			q.Set("order", "desc")
			var page wire.Answer
			if !c.get("/api/tasks?"+q.Encode(), &page) {
				break
			}
			for i := range page.Tasks {
				if t := &page.Tasks[i]; ok(t) {
					found = append(found, described(strconv.FormatUint(t.ID, 10), aboutTask(t)))
				}
			}
		}
		return found
	}
}

// aboutTask describes a task.
func aboutTask(t *wire.Task) string {
	about := t.TaskType + ", " + t.Status
	if t.Status == "claimed" && t.WorkerID != nil {
		about += " by " + *t.WorkerID
	}
	if t.Status == "failed" && t.Error != "" {
		about += ": " + term.CutTo(term.Printable(t.Error), 40)
	}
	return about
}

// isParent reports whether a task has steps.
func isParent(t *wire.Task) bool { return t.Finalize != "" }

// waitsForProcessor reports whether a processor ends the task.
func waitsForProcessor(t *wire.Task) bool { return t.Finalize == client.FinalizeClaim }

// taskTypes offers the types that have tasks or settings.
func taskTypes(c *completer, _ []string) []string {
	var answer wire.Types
	c.get("/api/types", &answer)
	var found []string
	for i := range answer.Types {
		t := &answer.Types[i]
		about := fmt.Sprintf("%d pending, %d claimed", t.Counts["pending"], t.Counts["claimed"])
		if t.Paused {
			about += ", paused"
		}
		found = append(found, described(t.TaskType, about))
	}
	return found
}

// workers offers the workers that hold claims or were heard from.
func workers(c *completer, _ []string) []string {
	var answer wire.Workers
	c.get("/api/workers", &answer)
	var found []string
	for i := range answer.Workers {
		w := &answer.Workers[i]
		found = append(found, described(w.WorkerID, fmt.Sprintf("holds %d", w.Claimed)))
	}
	return found
}

// holder offers the worker that holds the task in the first argument.
func holder(c *completer, args []string) []string {
	if t := c.task(args); t != nil && t.WorkerID != nil {
		return []string{described(*t.WorkerID, "holds task "+args[0])}
	}
	return nil
}

// holdersToken offers the token of the claim on the task in the first argument.
func holdersToken(c *completer, args []string) []string {
	if t := c.task(args); t != nil && t.ClaimToken != nil {
		about := "of the last claim"
		if t.WorkerID != nil {
			about = "of " + *t.WorkerID
		}
		return []string{described(strconv.FormatUint(*t.ClaimToken, 10), about)}
	}
	return nil
}

// task returns the task whose id is the first argument, or nil.
func (c *completer) task(args []string) *wire.Task {
	if len(args) == 0 {
		return nil
	}
	id, err := session.ParseID(args[0])
	if err != nil {
		return nil
	}
	var answer wire.Answer
	c.get(session.TaskPath(id, ""), &answer)
	return answer.Task
}

// schedules offers the names of the schedules of a page, the first 1,000 by name.
func schedules(c *completer, _ []string) []string {
	var answer wire.Schedules
	c.get("/api/schedules", &answer)
	var found []string
	for i := range answer.Schedules {
		s := &answer.Schedules[i]
		found = append(found, described(s.Name, cli.TaskTypeOf(s)+", "+cli.WhenText(s)))
	}
	return found
}

// members offers the ids of the nodes that ok accepts.
func members(ok func(c *wire.Cluster, n *wire.Node) bool) values {
	return func(c *completer, _ []string) []string {
		var answer wire.Cluster
		c.get("/api/cluster", &answer)
		var found []string
		for i := range answer.Nodes {
			if n := &answer.Nodes[i]; ok(&answer, n) {
				found = append(found, described(n.NodeID, strings.TrimSuffix(n.Suffrage+", "+n.State, ", ")))
			}
		}
		return found
	}
}

func anyMember(*wire.Cluster, *wire.Node) bool      { return true }
func isVoter(_ *wire.Cluster, n *wire.Node) bool    { return n.Suffrage == "voter" }
func isNonvoter(_ *wire.Cluster, n *wire.Node) bool { return n.Suffrage != "voter" }

func mayLead(c *wire.Cluster, n *wire.Node) bool {
	return n.Suffrage == "voter" && n.NodeID != c.Leader
}

// endpoints offers the URLs of the nodes.
func endpoints(c *completer, _ []string) []string {
	var answer wire.Cluster
	c.get("/api/cluster", &answer)
	var found []string
	for i := range answer.Nodes {
		n := &answer.Nodes[i]
		if u, err := url.Parse(n.HTTPAddr); err == nil && u.Host != "" {
			found = append(found, described(n.HTTPAddr, n.NodeID+", "+n.State))
		}
	}
	return found
}
