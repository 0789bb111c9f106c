package settings

import (
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"time"
)

// Reference returns the Markdown table of all variables of cfg, in the order of its fields; CONFIG.md holds
// it. A value that cfg has already is the default of a variable without a default tag.
func Reference(prefix string, cfg any) string {
	fields, _, err := walk(prefix, cfg)
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	b.WriteString("| Variable | Type | Default | Required | Description |\n|---|---|---|---|---|\n")
	seen := map[string]bool{}
	for _, f := range fields {
		if seen[f.name] {
			continue
		}
		seen[f.name] = true
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", f.name, typeName(f.value.Type()), f.defaultText(),
			yesNo(f.required), escape(f.tag.Get("desc")))
	}
	return b.String()
}

func (f field) defaultText() string {
	text := f.tag.Get("default")
	if text == "" && !f.value.IsZero() {
		text = fmt.Sprint(f.value.Interface())
	}
	if text == "" {
		return ""
	}
	return "`" + escape(text) + "`"
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func escape(s string) string { return strings.ReplaceAll(strings.ReplaceAll(s, "|", `\|`), "\n", " ") }

func typeName(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[Secret]():
		return "secret"
	case reflect.TypeFor[time.Duration]():
		return "duration"
	case reflect.TypeFor[slog.Level]():
		return "log level"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "boolean"
	case reflect.Float32, reflect.Float64:
		return "number"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "integer"
	case reflect.Slice:
		return "list of " + typeName(t.Elem())
	case reflect.Map:
		return "map"
	case reflect.Pointer:
		return typeName(t.Elem())
	default:
		return "text"
	}
}
