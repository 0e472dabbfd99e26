package term

import (
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/client"
)

// flagNames maps fields of the API to the flags of another name that send them.
var flagNames = map[string]string{
	"claim_token":     "token",
	"idempotency_key": "key",
	"labels":          "label",
	"processor_id":    "processor",
	"task_type":       "type",
	"task_types":      "type",
	"worker_id":       "worker",
}

// wrappers are the objects around the fields that a command sends.
var wrappers = strings.NewReplacer("filter.", "", "task.", "", "claim.", "")

// flagOf returns how the user of cmd gave a field of the API: as a flag or an argument. It returns "" for a field that
// cmd has no word for.
func flagOf(cmd *cobra.Command, name string) string {
	for _, flag := range []string{flagNames[name], strings.ReplaceAll(strings.TrimSuffix(name, "_ms"), "_", "-")} {
		if f := cmd.Flags().Lookup(flag); f != nil && !f.Hidden {
			return "--" + flag
		}
	}
	argument := strings.ToUpper(strings.TrimPrefix(name, "task_"))
	if required, _ := argumentsOf(cmd.Use); argument == "PARAMS" || len(required) > 0 && required[0] == argument {
		return argument
	}
	return ""
}

var fieldName = regexp.MustCompile(`[a-z]+(_[a-z]+)+`)

// inWords returns text and advice of a refusal with the flags and arguments of cmd in place of the API's fields.
func inWords(cmd *cobra.Command, refusal *client.Error, field string) (text, advice string) {
	text, advice = refusal.Text, refusal.Advice
	if cmd == nil {
		return text, advice
	}
	advice = strings.Replace(advice, "Correct the field and send the request again", "Correct it and repeat the command", 1)
	name, part, inPart := strings.Cut(wrappers.Replace(field), ".")
	if word := flagOf(cmd, name); word != "" {
		if inPart {
			word += " (" + part + ")"
		}
		text = strings.Replace(text, field, word, 1)
	}
	words := func(s string) string {
		return fieldName.ReplaceAllStringFunc(s, func(name string) string {
			if word := flagOf(cmd, name); word != "" {
				return word
			}
			return name
		})
	}
	if told := words(advice); told != advice {
		advice = told
		if rest, ok := strings.CutPrefix(told, "Send "); ok {
			advice = "Give " + rest
		}
	}
	return words(text), advice
}
