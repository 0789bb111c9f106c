package settings

import (
	"encoding"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/kelseyhightower/envconfig"
)

// field is one variable.
type field struct {
	name     string // with prefix
	tag      reflect.StructTag
	required bool
	value    reflect.Value
}

// group is a struct that may have a Validate method: the configuration, or a fragment in it.
type group struct {
	prefix string
	value  any
	names  []string // of its own variables, without those of nested groups
}

// walk lists variables and groups as envconfig does: an embedded struct adds its fields under the same
// prefix, a named field of a struct type under its own name.
func walk(prefix string, cfg any) ([]field, []group, error) {
	v := reflect.ValueOf(cfg)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return nil, nil, fmt.Errorf("configuration: want a pointer to a struct, got %T", cfg)
	}
	fields, groups := walkStruct(prefix, v.Elem())
	return fields, groups, nil
}

func walkStruct(prefix string, v reflect.Value) ([]field, []group) {
	var fields []field
	groups := []group{{prefix: prefix, value: v.Addr().Interface()}}
	for i := range v.NumField() {
		sf, fv := v.Type().Field(i), v.Field(i)
		if ignored, _ := strconv.ParseBool(sf.Tag.Get("ignored")); ignored || !fv.CanSet() {
			continue
		}
		name := prefix + "_" + variable(sf)
		if fv.Kind() == reflect.Struct && !decodes(fv) {
			if sf.Anonymous {
				name = prefix
			}
			fs, gs := walkStruct(name, fv)
			fields, groups = append(fields, fs...), append(groups, gs...)
			continue
		}
		required, _ := strconv.ParseBool(sf.Tag.Get("required"))
		fields = append(fields, field{name: name, tag: sf.Tag, required: required, value: fv})
		groups[0].names = append(groups[0].names, name)
	}
	return fields, groups
}

func variable(sf reflect.StructField) string {
	if tag := sf.Tag.Get("envconfig"); tag != "" {
		return strings.ToUpper(tag)
	}
	return strings.ToUpper(sf.Name)
}

// decodes reports whether a struct parses itself from one text and so is a variable and not a group.
func decodes(v reflect.Value) bool {
	switch v.Addr().Interface().(type) {
	case envconfig.Decoder, envconfig.Setter, encoding.TextUnmarshaler, encoding.BinaryUnmarshaler:
		return true
	}
	return false
}
