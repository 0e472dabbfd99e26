package term

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/client"
)

// flagNames maps fields of the API to the flags of another name that send them.
var flagNames = map[string]string{
	"claim_token":     "token",
	"expires_in_ms":   "expires",
	"idempotency_key": "key",
	"labels":          "label",
	"parent_id":       "parent",
	"processor_id":    "processor",
	"task_type":       "type",
	"task_types":      "type",
	"timeout_seconds": "for",
	"unique_ms":       "unique-for",
	"worker_id":       "worker",
}

// argumentNames maps fields of the API to the arguments of another name that send them.
var argumentNames = map[string]string{
	"share_key": "key",
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
	argument := strings.ToUpper(cmp.Or(argumentNames[name], strings.TrimPrefix(name, "task_")))
	if required, _ := argumentsOf(cmd.Use); argument == "PARAMS" || slices.Contains(required, argument) || strings.Contains(cmd.Use, "["+argument+"]") {
		return argument
	}
	return ""
}

// replaceField replaces the first word of text that is the field, which may be a part of a word before, as id is of
// Invalid.
func replaceField(text, field, word string) string {
	if rest, ok := strings.CutPrefix(text, field); ok {
		return word + rest
	}
	return strings.Replace(text, " "+field, " "+word, 1)
}

// integerBounds matches the bounds of a field that is a number.
var integerBounds = regexp.MustCompile(`must be an integer from (-?[0-9]+) to ([0-9]+)$`)

// boundsInTime returns the text about a field of a length of time with its bounds as its flag takes them: a time, in
// place of the field's number of milliseconds or seconds.
func boundsInTime(text, field string) string {
	unit := time.Millisecond
	switch bounds := integerBounds.FindStringSubmatch(text); {
	case bounds == nil:
		return text
	case strings.HasSuffix(field, "_seconds"):
		unit = time.Second
		fallthrough
	case strings.HasSuffix(field, "_ms"):
		least, err := strconv.ParseInt(bounds[1], 10, 64)
		most, err2 := strconv.ParseInt(bounds[2], 10, 64)
		if err != nil || err2 != nil || most > int64(math.MaxInt64/unit) {
			return text
		}
		said := "must be at most " + showBound(most, unit)
		if least > 0 {
			said = "must be from " + showBound(least, unit) + " to " + showBound(most, unit)
		}
		return strings.Replace(text, bounds[0], said, 1)
	}
	return text
}

// showBound formats n units as a flag takes them, without a last unit of zero.
func showBound(n int64, unit time.Duration) string {
	s := ShowDuration(time.Duration(n) * unit)
	for _, zero := range []string{"00h", "00m", "00s"} {
		s = strings.TrimSuffix(s, zero)
	}
	return s
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
		text = replaceField(text, field, word)
		if !inPart && strings.HasPrefix(word, "--") {
			text = boundsInTime(text, name)
		}
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
