// Package settings reads the configuration of a service from environment variables with envconfig, and writes
// its reference (CONFIG.md).
//
// It owns the fragments that several services embed, the Secret type, and the rules that envconfig lacks: all
// errors are reported at once and name the variable, an unknown variable with the prefix of the service is an
// error, an empty value counts as absent, and a variable is read under its prefixed name only. There are no
// configuration files and no flags, and values never change while a process runs.
package settings

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/kelseyhightower/envconfig"
)

// ConfigError is an error of one variable. Var has no prefix when a fragment's Validate returns it; Load adds
// the prefix.
type ConfigError struct {
	Var    string
	Reason string
}

// Errorf returns a ConfigError for the variable, which is named without its prefix.
func Errorf(variable, format string, args ...any) *ConfigError {
	return &ConfigError{Var: variable, Reason: fmt.Sprintf(format, args...)}
}

// Error implements error. It never contains the value of a Secret.
func (f *ConfigError) Error() string { return f.Var + ": " + f.Reason }

// validator is implemented by configurations and fragments with checks beyond the form of each variable.
type validator interface{ Validate() []error }

// Load fills cfg, a pointer to a struct, from those of the "NAME=value" pairs whose names begin with the
// prefix and an underscore. A field without a variable and without a default keeps its value, so a service
// may set defaults before. The error joins all ConfigErrors.
func Load(prefix string, cfg any, environ []string) error {
	fields, groups, err := walk(prefix, cfg)
	if err != nil {
		return err
	}
	env := parseEnviron(environ)
	errs, unread := unknown(prefix, fields, env), map[string]bool{}
	for _, f := range fields {
		if err := f.assign(env[f.name]); err != nil {
			errs, unread[f.name] = append(errs, err), true
		}
	}
	return join(append(errs, validate(groups, unread)...))
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
	var errs []error
	for _, name := range names {
		errs = append(errs, Errorf(name, "unknown variable"))
	}
	return errs
}

// assign converts the value, or the default when it is empty, into the field. envconfig converts it: it
// processes a struct that has only this field, with the value as the default. So all errors are found, and
// the unprefixed name is never looked up.
func (f field) assign(value string) error {
	if strings.TrimSpace(value) == "" {
		value = f.tag.Get("default")
	}
	if value == "" {
		if f.required && f.value.IsZero() {
			return Errorf(f.name, "is required")
		}
		return nil
	}
	if f.value.Type() == reflect.TypeFor[Secret]() || f.value.Type() == reflect.TypeFor[string]() {
		f.value.SetString(value)
		return nil
	}
	one := reflect.New(reflect.StructOf([]reflect.StructField{{
		Name: "Value", Type: f.value.Type(), Tag: reflect.StructTag("default:" + strconv.Quote(value)),
	}}))
	if err := envconfig.Process(unsetPrefix, one.Interface()); err != nil {
		return Errorf(f.name, "%s", f.reason(err))
	}
	f.value.Set(one.Elem().Field(0))
	return nil
}

// unsetPrefix cannot occur in the name of an environment variable.
const unsetPrefix = "=\x00"

func (f field) reason(err error) string {
	reason := "cannot be read as " + typeName(f.value.Type())
	var parse *envconfig.ParseError
	if errors.As(err, &parse) && parse.Err != nil && !strings.Contains(typeName(f.value.Type()), "secret") {
		reason += ": " + parse.Err.Error()
	}
	return reason
}

// validate calls Validate of each group whose variables were all read: a check across variables has no
// meaning otherwise.
func validate(groups []group, unread map[string]bool) []error {
	var errs []error
	seen := map[string]bool{} // an embedded Validate may be promoted and is called twice then
	for _, g := range groups {
		v, ok := g.value.(validator)
		if !ok || slices.ContainsFunc(g.names, func(name string) bool { return unread[name] }) {
			continue
		}
		for _, err := range v.Validate() {
			var config *ConfigError
			if errors.As(err, &config) {
				config = &ConfigError{Var: g.prefix + "_" + config.Var, Reason: config.Reason}
				err = config
			}
			if reported := config != nil && unread[config.Var]; err != nil && !reported &&
				!seen[err.Error()] {
				seen[err.Error()] = true
				errs = append(errs, err)
			}
		}
	}
	return errs
}

func join(errs []error) error {
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("configuration: %d error(s)\n%w", len(errs), errors.Join(errs...))
}
