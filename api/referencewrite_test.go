package api

import (
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/claimq/claimq/api/wire"
)

// referencePage is one page of the reference: its calls, by the tags of the description, and the objects that no page
// before it has described.
type referencePage struct {
	file, top string
	tags      []string
}

// The first page also has what all calls share.
var referencePages = []referencePage{
	{"api.md", `# API reference

Every call of the HTTP API: what it takes, what it answers, one example of each. This page has [all calls](#all-calls), [parameters](#common-parameters) and [answers](#common-answers) that they share,
[codes](#codes) of refusals, and the calls to submit and change tasks and to look at them; [api-workers.md](api-workers.md) has those of workers, [api-operators.md](api-operators.md) those of operators.
The pages are generated from [api/openapi.yaml](../api/openapi.yaml), against which the tests hold every answer: ` + "`go test ./api -run Reference_document -update`" + `.
[protocol.md](protocol.md) has what is behind them: a task's life, claims, repeats, and the rules that
all calls share: [what a body may be](protocol.md#requests), [keys and roles](protocol.md#authentication), [refusals](protocol.md#answers). A node serves the
description itself at ` + "`/openapi.json`" + `, for programs that make clients from it.

- Bodies are JSON, whatever ` + "`Content-Type`" + ` says. Unknown fields and parameters are refused. ` + "`null`" + ` for an optional field is as absent; in a PATCH it clears.
- A *time* is RFC 3339; names that end in ` + "`_ms`" + ` are milliseconds. A field of an answer that is not marked *always* is left out where it does not apply.
- Every answer has ` + "`X-Request-ID`" + `; one that reflects the state has ` + "`X-Claimq-Index`" + `.
- The role ` + "`operator`" + ` may make every call. Where a node has no keys, nobody needs one.
`, []string{"tasks", "seeing"}},
	{"api-workers.md", `# API reference: workers

The calls by which workers claim tasks and settle their claims. [api.md](api.md) has the index of [all calls](#all-calls) and what they share; all three pages are generated from the same description.
`, []string{"claims"}},
	{"api-operators.md", `# API reference: operators

The calls for types, schedules and the cluster, those of the page, and those for probes and scrapers. [api.md](api.md) has the index of [all calls](#all-calls) and what they share; all three pages are generated from the same description.
`, []string{"types", "schedules", "cluster", "page", "health"}},
}

var (
	anchorLink = regexp.MustCompile(`\]\(#([^)]*)\)`)
	headings   = regexp.MustCompile(`(?m)^#+ (.*)$`)
)

// documents returns the text of each page by its file. A link to a heading names its page only where that is another.
func (r *reference) documents() map[string]string {
	texts, pageOf := map[string]string{}, map[string]string{}
	for _, page := range referencePages {
		text := r.document(page)
		for _, heading := range headings.FindAllStringSubmatch(text, -1) {
			pageOf[slug(heading[1])] = page.file
		}
		texts[page.file] = text
	}
	for file, text := range texts {
		texts[file] = anchorLink.ReplaceAllStringFunc(text, func(link string) string {
			anchor := anchorLink.FindStringSubmatch(link)[1]
			if to := pageOf[anchor]; to != file {
				return "](" + to + "#" + anchor + ")"
			}
			return link
		})
	}
	return texts
}

func (r *reference) document(page referencePage) string {
	var b strings.Builder
	b.WriteString(page.top)
	if page.file == referencePages[0].file {
		r.callTable(&b)
		r.common(&b)
		r.commonAnswers(&b)
		r.codeTable(&b)
	}
	for _, name := range page.tags {
		fmt.Fprintf(&b, "\n## %s: %s\n", strings.ToUpper(name[:1])+name[1:], lowerFirst(r.tagSays(name)))
		for _, o := range r.operations() {
			if o.tag() == name {
				o.write(&b)
			}
		}
	}
	r.objectSections(&b)
	return b.String()
}

// tagSays returns the description of a tag.
func (r *reference) tagSays(name string) string {
	for _, tag := range r.items(r.get(r.root, "tags")) {
		if text(r.get(tag, "name")) == name {
			return text(r.get(tag, "description"))
		}
	}
	return ""
}

// tag returns the first tag of the call, its section.
func (o *operation) tag() string { return text(o.r.items(o.get("tags"))[0]) }

func (o *operation) title() string { return o.method + " " + o.path }

// role names the roles besides operators that may make the call.
func (o *operation) role() string {
	var roles []string
	for _, role := range o.r.items(o.get("x-roles")) {
		if role.Value != "operator" {
			roles = append(roles, "`"+role.Value+"`")
		}
	}
	switch {
	case o.get("x-roles") == nil:
		return "none needed"
	case len(roles) == 0:
		return "`operator`"
	case len(roles) == 3 && o.method == "GET":
		return "any"
	}
	return listed(roles)
}

func (r *reference) callTable(b *strings.Builder) {
	b.WriteString("\n## All calls\n\n| call | does | role |\n| --- | --- | --- |\n")
	for _, page := range referencePages {
		for _, tag := range page.tags {
			for _, o := range r.operations() {
				if o.tag() == tag {
					fmt.Fprintf(b, "| [%s](#%s) | %s | %s |\n", o.title(), slug(o.title()), cell(text(o.get("summary"))), o.role())
				}
			}
		}
	}
}

// common describes the parameters of many calls.
func (r *reference) common(b *strings.Builder) {
	b.WriteString("\n## Common parameters\n\nCalls that take one of these name it.\n\n| parameter | in | type | |\n| --- | --- | --- | --- |\n")
	for _, p := range r.fields(r.path(r.root, "components", "parameters")) {
		r.parameter(b, p)
	}
}

func (r *reference) parameter(b *strings.Builder, p *yaml.Node) {
	schema := r.get(p, "schema")
	says := r.says(p)
	if says == "" {
		says = r.says(r.resolve(schema))
	}
	if d := text(r.get(r.resolve(schema), "default")); d != "" {
		says += ". Default: `" + d + "`"
	}
	fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", text(r.get(p, "name")), text(r.get(p, "in")), cell(r.typeOf(schema, true)), cell(says))
}

// meaning returns the description of a field, or else of its elements.
func (r *reference) meaning(field *yaml.Node) string {
	if says := r.says(field); says != "" {
		return says
	}
	return r.says(r.resolve(r.get(field, "items")))
}

func (r *reference) says(n *yaml.Node) string { return text(r.get(n, "description")) }

// write writes the section of a call.
func (o *operation) write(b *strings.Builder) {
	r := o.r
	fmt.Fprintf(b, "\n### %s\n\n%s. Role: %s.\n", o.title(), strings.TrimSuffix(text(o.get("summary")), "."), o.role())
	for part := range strings.SplitSeq(r.says(o.node), "\n\n") {
		b.WriteString("\n" + asProse(part) + "\n")
	}
	o.parameters(b)
	o.body(b)
	o.answers(b)
	o.sample(b)
}

// asProse formats a part of a description: a table or a list unchanged, prose as one paragraph.
func asProse(says string) string {
	if says[0] == '|' || strings.HasPrefix(says, "- ") {
		return says
	}
	says = strings.Join(strings.Fields(says), " ")
	if !strings.HasSuffix(says, ".") && !strings.HasSuffix(says, ":") {
		says += "."
	}
	return says
}

func (o *operation) parameters(b *strings.Builder) {
	r := o.r
	var shared []string
	var own strings.Builder
	for _, p := range slices.Concat(r.items(r.get(o.item, "parameters")), r.items(o.get("parameters"))) {
		if r.get(p, "$ref") != nil {
			shared = append(shared, "`"+text(r.get(r.resolve(p), "name"))+"`")
			continue
		}
		r.parameter(&own, p)
	}
	if own.Len() > 0 {
		b.WriteString("\n| parameter | in | type | |\n| --- | --- | --- | --- |\n" + own.String())
	}
	fmt.Fprintf(b, "\n[Common parameters](#common-parameters): %s.\n", strings.Join(shared, ", "))
}

func (o *operation) body(b *strings.Builder) {
	r := o.r
	body := r.resolve(o.get("requestBody"))
	if body == nil {
		return
	}
	content := r.path(body, "content", "application/json")
	if content == nil {
		b.WriteString("\nBody: `application/octet-stream`, the bytes of a backup.\n")
		return
	}
	may := ""
	if text(r.get(body, "required")) == "false" {
		may = ", which may be left out"
	}
	r.shape(b, "Body"+may, r.get(content, "schema"), true)
}

// shape describes a body: as a link, a table, or a choice of them.
func (r *reference) shape(b *strings.Builder, what string, schema *yaml.Node, sent bool) {
	if name := r.named(schema); name != "" && !strings.HasSuffix(name, "Answer") && r.isObject(r.resolve(schema)) {
		fmt.Fprintf(b, "\n%s: %s.\n", what, r.typeOf(schema, sent))
		return
	}
	schema = r.resolve(schema)
	if some := r.items(r.get(schema, "oneOf")); some != nil {
		for i, one := range some {
			if i > 0 {
				what = "Or"
			}
			r.shape(b, what, one, sent)
		}
		return
	}
	if r.get(schema, "properties") == nil || len(r.get(schema, "properties").Content) == 0 {
		fmt.Fprintf(b, "\n%s: an object%s.\n", what, map[bool]string{true: " without fields"}[r.get(schema, "properties") != nil])
		return
	}
	fmt.Fprintf(b, "\n%s:\n\n", what)
	r.table(b, schema, sent)
}

// table writes the fields of an object.
func (r *reference) table(b *strings.Builder, schema *yaml.Node, sent bool) {
	third := ""
	if sent {
		third = "default"
	}
	fmt.Fprintf(b, "| field | type | %s | |\n| --- | --- | --- | --- |\n", third)
	r.rows(b, "", schema, sent)
}

func (r *reference) rows(b *strings.Builder, prefix string, schema *yaml.Node, sent bool) {
	required := map[string]bool{}
	for _, name := range r.items(r.get(schema, "required")) {
		required[name.Value] = true
	}
	for name, field := range r.fields(r.get(schema, "properties")) {
		if name == "success" {
			continue // true for each of them
		}
		plain := r.resolve(field)
		third := ""
		switch {
		case required[name] && sent:
			third = "required"
		case required[name]:
			third = "always"
		case sent:
			if d := text(r.get(plain, "default")); d != "" {
				third = "`" + d + "`"
			}
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", prefix+name, cell(r.typeOf(field, sent)), third, cell(r.meaning(plain)))
		if r.named(field) != "" {
			continue
		}
		if r.get(plain, "properties") != nil {
			r.rows(b, prefix+name+".", plain, sent)
		}
		if item := r.get(plain, "items"); item != nil && r.named(item) == "" && r.get(item, "properties") != nil {
			r.rows(b, prefix+name+"[].", item, sent)
		}
	}
}

// responses walks the answers by status.
func (o *operation) responses() iter.Seq2[string, *yaml.Node] {
	byStatus := maps.Collect(o.r.fields(o.get("responses")))
	return func(yield func(string, *yaml.Node) bool) {
		for _, status := range slices.Sorted(maps.Keys(byStatus)) {
			if !yield(status, byStatus[status]) {
				return
			}
		}
	}
}

// usual are the answers of many calls, which have their own section.
func (r *reference) usual() map[string]bool {
	names := map[string]bool{}
	for name := range r.usualAnswers() {
		names[name] = true
	}
	return names
}

// usualAnswers walks the answers that are described once for all calls.
func (r *reference) usualAnswers() iter.Seq2[string, *yaml.Node] {
	return func(yield func(string, *yaml.Node) bool) {
		for name, answer := range r.fields(r.path(r.root, "components", "responses")) {
			if text(r.get(answer, "x-status")) != "" && !yield(name, answer) {
				return
			}
		}
	}
}

// codes returns the possible codes of an answer.
func (r *reference) codes(answer *yaml.Node) string {
	var codes []string
	for _, part := range r.items(r.path(answer, "content", "application/json", "schema", "allOf")) {
		if r.named(part) != "" {
			continue // all codes
		}
		for _, code := range r.items(r.path(part, "properties", "code", "enum")) {
			codes = append(codes, "`"+code.Value+"`")
		}
	}
	return strings.Join(codes, ", ")
}

// commonAnswers describes the answers of many calls.
func (r *reference) commonAnswers(b *strings.Builder) {
	b.WriteString("\n## Common answers\n\nWhich of them a call gives stands there.\n\n| status | codes | |\n| --- | --- | --- |\n")
	for _, answer := range r.usualAnswers() {
		fmt.Fprintf(b, "| %s | %s | %s |\n", text(r.get(answer, "x-status")), r.codes(answer), cell(r.says(answer)))
	}
}

// answers describes each status with its codes.
func (o *operation) answers(b *strings.Builder) {
	r := o.r
	usual := r.usual()
	var common []string
	b.WriteString("\n| status | codes | |\n| --- | --- | --- |\n")
	for status, answer := range o.responses() {
		if usual[strings.TrimPrefix(text(r.get(answer, "$ref")), "#/components/responses/")] {
			common = append(common, strings.TrimSpace(status+" "+r.codes(r.resolve(answer))))
			continue
		}
		answer = r.resolve(answer)
		fmt.Fprintf(b, "| %s | %s | %s |\n", status, r.codes(answer), cell(r.says(answer)))
	}
	fmt.Fprintf(b, "\n[Common answers](#common-answers): %s.\n", strings.Join(common, "; "))
	schemas := ""
	for status, answer := range o.responses() {
		if status[0] != '2' {
			continue
		}
		for media, content := range r.fields(r.path(answer, "content")) {
			var part strings.Builder
			if media != "application/json" {
				fmt.Fprintf(&part, "\nAnswer: `%s`.\n", media)
			} else if schema := r.get(content, "schema"); r.get(r.resolve(schema), "properties") != nil || r.get(r.resolve(schema), "oneOf") != nil {
				r.shape(&part, "Answer, in addition to `success`", schema, false)
			} else {
				part.WriteString("\nAnswer: a JSON object.\n")
			}
			if !strings.Contains(schemas, part.String()) {
				schemas += part.String()
			}
		}
	}
	b.WriteString(schemas)
}

// sample writes the example of the call.
func (o *operation) sample(b *strings.Builder) {
	r := o.r
	var lines []string
	request := strings.NewReplacer("{id}", "17", "{key}", "mail-7", "{type}", "mail", "{name}", "nightly").Replace(o.title())
	if sent := r.path(o.get("requestBody"), "content", "application/json"); sent != nil {
		for _, example := range r.examplesOf(sent) {
			lines = append(lines, request, r.sample(example, 0), "")
		}
	} else {
		lines = append(lines, request, "")
	}
	for status, answer := range o.responses() {
		content := r.path(answer, "content", "application/json")
		if status[0] != '2' || content == nil {
			continue
		}
		for _, example := range r.examplesOf(content) {
			lines = append(lines, status, r.sample(example, 0), "")
		}
	}
	text := strings.TrimRight(strings.Join(lines, "\n"), "\n")
	b.WriteString("\n    " + strings.ReplaceAll(strings.ReplaceAll(text, "\n", "\n    "), "\n    \n", "\n\n") + "\n")
}

// examplesOf returns all examples of a body.
func (r *reference) examplesOf(content *yaml.Node) []*yaml.Node {
	var all []*yaml.Node
	for _, e := range r.fields(r.get(content, "examples")) {
		all = append(all, r.get(e, "value"))
	}
	if e := r.example(content); all == nil && e != nil {
		all = append(all, e)
	}
	return all
}

// objectSections writes the schemas that this page or one before it links to, and those that they link to, except those
// that have a section already.
func (r *reference) objectSections(b *strings.Builder) {
	b.WriteString("\n## Objects\n")
	sections := map[string]string{}
	for more := true; more; {
		more = false
		for name, schema := range r.fields(r.path(r.root, "components", "schemas")) {
			if r.objects[name] && !r.described[name] {
				var section strings.Builder
				r.objectSection(&section, name, schema)
				sections[name], r.described[name], more = section.String(), true, true
			}
		}
	}
	for name := range r.fields(r.path(r.root, "components", "schemas")) {
		b.WriteString(sections[name])
	}
}

func (r *reference) objectSection(b *strings.Builder, name string, schema *yaml.Node) {
	fmt.Fprintf(b, "\n### %s\n", name)
	if says := r.says(schema); says != "" {
		b.WriteString("\n" + asProse(says) + "\n")
	}
	sent := strings.HasPrefix(name, "New") || strings.HasSuffix(name, "Op") || slices.Contains([]string{"Claim", "NextClaim", "NextStep", "Backoff", "BackoffOrNull", "Filter", "FinalizationClaim", "NextClaim", "ScheduledTask"}, name)
	some := append(r.items(r.get(schema, "oneOf")), r.items(r.get(schema, "anyOf"))...)
	if some == nil {
		b.WriteString("\n")
		r.table(b, schema, sent)
		return
	}
	var links []string
	for _, one := range some {
		links = append(links, r.typeOf(one, sent))
	}
	b.WriteString("\nIt is " + listed(links) + ".\n")
}

// codeTable writes every code with its status and advice.
func (r *reference) codeTable(b *strings.Builder) {
	r.objects["Refusal"] = true
	b.WriteString("\n## Codes\n\n" +
		"A refusal's `code` is stable; programs go by it, people by `error` (what happened) and `message` (what to do). [Refusal](#refusal) has the other fields.\n\n" +
		"| code | status | what to do |\n| --- | --- | --- |\n")
	for code, advice := range r.fields(r.path(r.root, "components", "schemas", "Code", "x-advice")) {
		fmt.Fprintf(b, "| `%s` | %d | %s |\n", code, wire.Code(code).Status(), cell(text(advice)))
	}
}

// cell makes a text fit into a table.
func cell(s string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(s), " "), "|", `\|`)
}

func lowerFirst(s string) string { return strings.ToLower(s[:1]) + s[1:] }
