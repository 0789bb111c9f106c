// Package settings reads a service's configuration from environment variables with envconfig, and describes it (CONFIG.md).
//
// It owns the fragments that several services embed, the Secret type, and the rules envconfig lacks: every fault is told at once and by the variable's name,
// a variable with the service's prefix that nobody knows is a fault, an empty value counts as absent, and a variable is read under its prefixed name only.
// It refuses files, flags, and values that change while a process runs.
package settings

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/kelseyhightower/envconfig"
)

// Fault is one thing wrong with one variable. Var carries no prefix when a fragment's Validate returns it; Load adds it.
type Fault struct {
	Var    string
	Reason string
}

// Faultf makes a Fault for the variable named without its prefix.
func Faultf(variable, format string, args ...any) *Fault {
	return &Fault{Var: variable, Reason: fmt.Sprintf(format, args...)}
}

// Error implements error. It never contains the value of a Secret.
func (f *Fault) Error() string { return f.Var + ": " + f.Reason }

// validator is implemented by configurations and fragments that check more than one variable's form.
type validator interface{ Validate() []error }

// Load fills cfg, a pointer to a struct, from the variables that begin with the prefix and an underscore. A field that has neither a variable nor a default keeps the value it had, so a
// service may set its own defaults before. The error joins every fault found; it is nil when there is none.
func Load(prefix string, cfg any) error { return LoadFrom(prefix, cfg, os.Environ()) }

// LoadFrom is Load over the given "NAME=value" pairs.
func LoadFrom(prefix string, cfg any, environ []string) error {
	fields, groups, err := walk(prefix, cfg)
	if err != nil {
		return err
	}
	env := parseEnviron(environ)
	faults, unread := unknown(prefix, fields, env), map[string]bool{}
	for _, f := range fields {
		if fault := f.assign(env[f.name]); fault != nil {
			faults, unread[f.name] = append(faults, fault), true
		}
	}
	return join(append(faults, validate(groups, unread)...))
}

func parseEnviron(environ []string) map[string]string {
	env := make(map[string]string, len(environ))
	for _, pair := range environ {
		if name, value, ok := strings.Cut(pair, "="); ok {
			env[name] = value
		}
	}
	return env
}

func unknown(prefix string, fields []field, env map[string]string) []error {
	known := make(map[string]bool, len(fields))
	for _, f := range fields {
		known[f.name] = true
	}
	var names []string
	for name := range env {
		if strings.HasPrefix(name, prefix+"_") && !known[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var faults []error
	for _, name := range names {
		faults = append(faults, Faultf(name, "unknown variable"))
	}
	return faults
}

// assign converts value (or the default, when it is empty) into the field. The conversion is envconfig's: a struct of that one field is processed, whose default is the value; so one
// fault does not hide the next, and the unprefixed name is never looked up.
func (f field) assign(value string) error {
	if strings.TrimSpace(value) == "" {
		value = f.tag.Get("default")
	}
	if value == "" {
		if f.required && f.value.IsZero() {
			return Faultf(f.name, "is required")
		}
		return nil
	}
	if f.value.Type() == reflect.TypeFor[Secret]() || f.value.Type() == reflect.TypeFor[string]() {
		f.value.SetString(value)
		return nil
	}
	one := reflect.New(reflect.StructOf([]reflect.StructField{{
		Name: "Value", Type: f.value.Type(), Tag: reflect.StructTag("default:" + quoteTag(value)),
	}}))
	if err := envconfig.Process(unsetPrefix, one.Interface()); err != nil {
		return Faultf(f.name, "%s", f.reason(err))
	}
	f.value.Set(one.Elem().Field(0))
	return nil
}

// unsetPrefix cannot occur in an environment variable's name.
const unsetPrefix = "=\x00"

func (f field) reason(err error) string {
	reason := "cannot be read as " + typeName(f.value.Type())
	var parse *envconfig.ParseError
	if errors.As(err, &parse) && parse.Err != nil && !strings.Contains(typeName(f.value.Type()), "secret") {
		reason += ": " + parse.Err.Error()
	}
	return reason
}

// validate asks each group of which every variable could be read: a check across variables means nothing else.
func validate(groups []group, unread map[string]bool) []error {
	var faults []error
	seen := map[string]bool{} // an embedded fragment's Validate may be promoted, and is then called twice
	for _, g := range groups {
		v, ok := g.value.(validator)
		if !ok || slices.ContainsFunc(g.names, func(name string) bool { return unread[name] }) {
			continue
		}
		for _, err := range v.Validate() {
			var fault *Fault
			if errors.As(err, &fault) {
				fault = &Fault{Var: g.prefix + "_" + fault.Var, Reason: fault.Reason}
				err = fault
			}
			if known := fault != nil && unread[fault.Var]; err != nil && !known && !seen[err.Error()] {
				seen[err.Error()] = true
				faults = append(faults, err)
			}
		}
	}
	return faults
}

func join(faults []error) error {
	if len(faults) == 0 {
		return nil
	}
	return fmt.Errorf("configuration: %d fault(s)\n%w", len(faults), errors.Join(faults...))
}
