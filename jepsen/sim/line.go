package sim

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/claimq/claimq/fsm/command"
)

// lineOf formats a value in one line of a trace: for structs the fields that are not zero,
// in order, and for commands also their kind.
func lineOf(v any) string {
	var b strings.Builder
	addValue(&b, reflect.ValueOf(v))
	return b.String()
}

func addValue(b *strings.Builder, v reflect.Value) {
	text, isText := v.Interface().(fmt.Stringer)
	switch kind := v.Kind(); {
	case kind == reflect.Pointer || kind == reflect.Interface:
		addValue(b, v.Elem())
	case isText:
		b.WriteString(text.String())
	case kind == reflect.Struct:
		if c, ok := v.Interface().(command.Command); ok {
			b.WriteString(command.RowOf(c).Name)
		}
		b.WriteString("{")
		addFields(b, v)
		b.WriteString("}")
	case kind == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8:
		b.Write(v.Bytes())
	case kind == reflect.Slice:
		for i := range v.Len() {
			addValue(b, v.Index(i))
			b.WriteString(",")
		}
	default:
		fmt.Fprint(b, v.Interface())
	}
}

// addFields adds the fields of a struct, including those of embedded structs.
func addFields(b *strings.Builder, v reflect.Value) {
	for i := range v.NumField() {
		switch f := v.Type().Field(i); {
		case !f.IsExported() || v.Field(i).IsZero():
		case f.Anonymous:
			addFields(b, v.Field(i))
		default:
			b.WriteString(f.Name + "=")
			addValue(b, v.Field(i))
			b.WriteString(" ")
		}
	}
}
