package contract

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// vars are the values that a row has bound, as JSON texts.
type vars map[string]string

var (
	quotedVar = regexp.MustCompile(`"\$(\w+)"`)
	plainVar  = regexp.MustCompile(`\$(\w+)`)
	longVar   = regexp.MustCompile(`^x(\d+)$`)
	stepsVar  = regexp.MustCompile(`^steps(\d+)$`)
	rangeForm = regexp.MustCompile(`^<(len )?(-?[\d.]+)\.\.(-?[\d.]+)>$`)
)

// bound returns the value of a name, as a JSON text. The values of x1, x2, ... are texts of
// that many letters, those of steps1, steps2, ... that many steps.
func (v vars) bound(name string) (value string, ok bool) {
	if m := longVar.FindStringSubmatch(name); m != nil {
		n, err := strconv.Atoi(m[1])
		return `"` + strings.Repeat("x", n) + `"`, err == nil
	}
	if m := stepsVar.FindStringSubmatch(name); m != nil {
		n, err := strconv.Atoi(m[1])
		return manySteps(n), err == nil
	}
	value, ok = v[name]
	return value, ok
}

// manySteps returns an array of n steps of the type $T.
func manySteps(n int) string {
	steps := make([]string, n)
	for i := range steps {
		steps[i] = fmt.Sprintf(`{"step":"s%d","task_type":"$T","params":%d}`, i+1, i+1)
	}
	return "[" + strings.Join(steps, ",") + "]"
}

// fill fills the bound values into a request: "$id" becomes the value itself, $id inside a
// text its characters.
func (v vars) fill(text string) string {
	text = quotedVar.ReplaceAllStringFunc(text, func(s string) string {
		if value, ok := v.bound(s[2 : len(s)-1]); ok {
			return value
		}
		return s
	})
	return plainVar.ReplaceAllStringFunc(text, func(s string) string {
		if value, ok := v.bound(s[1:]); ok {
			return strings.Trim(value, `"`)
		}
		return s
	})
}

// match compares the answer with the pattern and binds new variables. It returns the first
// difference, "" if it matches.
func (v vars) match(pattern, body string) string {
	if pattern == "" {
		return ""
	}
	var want, got any
	if err := decode(pattern, &want); err != nil {
		return fmt.Sprintf("the pattern %s: %v", pattern, err)
	}
	if err := decode(body, &got); err != nil {
		return "the answer is no JSON: " + err.Error()
	}
	return v.value("", want, got)
}

func decode(text string, to *any) error {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	return d.Decode(to)
}

func (v vars) value(path string, want, got any) string {
	switch want := want.(type) {
	case map[string]any:
		if one, ok := want["<one>"]; ok {
			return v.one(path, one, got)
		}
		object, ok := got.(map[string]any)
		if !ok {
			return fmt.Sprintf("%s is %s, not an object", path, text(got))
		}
		for _, key := range slices.Sorted(maps.Keys(want)) { // sorted, because a value may refer to one bound before
			name, w := v.fill(key), want[key]
			g, there := object[name]
			if w == "<absent>" {
				if there {
					return fmt.Sprintf("%s.%s is there: %s", path, name, text(g))
				}
				continue
			}
			if !there {
				return fmt.Sprintf("%s.%s is missing", path, name)
			}
			if problem := v.value(path+"."+name, w, g); problem != "" {
				return problem
			}
		}
		return ""
	case []any:
		list, ok := got.([]any)
		if !ok || len(list) != len(want) {
			return fmt.Sprintf("%s is %s, not %d elements", path, text(got), len(want))
		}
		for i := range want {
			if problem := v.value(fmt.Sprintf("%s[%d]", path, i), want[i], list[i]); problem != "" {
				return problem
			}
		}
		return ""
	case string:
		return v.text(path, want, got)
	}
	if text(want) != text(got) {
		return fmt.Sprintf("%s is %s, not %s", path, text(got), text(want))
	}
	return ""
}

// one matches an array that contains a matching element.
func (v vars) one(path string, want, got any) string {
	list, ok := got.([]any)
	if !ok {
		return fmt.Sprintf("%s is %s, not an array", path, text(got))
	}
	problem := ""
	for i, g := range list {
		tried := maps.Clone(v)
		if problem = tried.value(fmt.Sprintf("%s[%d]", path, i), want, g); problem == "" {
			maps.Copy(v, tried)
			return ""
		}
	}
	return fmt.Sprintf("none of the %d elements of %s fits; the last: %s", len(list), path, problem)
}

// text matches a string of the pattern: a variable, a form in <>, or itself.
func (v vars) text(path, want string, got any) string {
	if name, ok := strings.CutPrefix(want, "$"); ok && !strings.ContainsAny(name, "$ -./") {
		bound, known := v.bound(name)
		if !known {
			v[name] = text(got)
			return ""
		}
		if bound != text(got) {
			return fmt.Sprintf("%s is %s, not $%s = %s", path, text(got), name, bound)
		}
		return ""
	}
	if strings.HasPrefix(want, "<") && strings.HasSuffix(want, ">") && !v.form(want, got) {
		return fmt.Sprintf("%s is %s, not %s", path, text(got), v.fill(want))
	} else if strings.HasPrefix(want, "<") {
		return ""
	}
	if g, ok := got.(string); !ok || g != v.fill(want) {
		return fmt.Sprintf("%s is %s, not %q", path, text(got), v.fill(want))
	}
	return ""
}

// form reports whether a value fits a form such as <time>.
func (v vars) form(want string, got any) bool {
	if m := rangeForm.FindStringSubmatch(want); m != nil {
		number := text(got)
		if list, ok := got.([]any); ok && m[1] != "" {
			number = strconv.Itoa(len(list))
		} else if m[1] != "" {
			return false
		}
		n, err := strconv.ParseFloat(number, 64)
		low, lowErr := strconv.ParseFloat(m[2], 64)
		high, highErr := strconv.ParseFloat(m[3], 64)
		return err == nil && lowErr == nil && highErr == nil && low <= n && n <= high
	}
	form, arg, _ := strings.Cut(strings.Trim(want, "<>"), " ")
	switch form {
	case "any":
		return true
	case "time":
		s, _ := got.(string)
		_, err := time.Parse("2006-01-02T15:04:05.000Z", s)
		return err == nil
	case "not":
		return text(got) != v[strings.TrimPrefix(arg, "$")]
	case "has":
		s, _ := got.(string)
		return strings.Contains(s, v.fill(arg))
	case "later":
		return later(text(got), v[strings.TrimPrefix(arg, "$")])
	}
	return false
}

// later reports whether a is a larger number or a later time than b.
func later(a, b string) bool {
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	if errX == nil && errY == nil {
		return x > y
	}
	return len(a) == len(b) && a > b // times in one form
}

// text returns the value as JSON.
func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
