package provider

import (
	"fmt"
	"maps"
	"slices"
)

// Registry holds the mounted adapters. It does not change after New.
type Registry struct{ adapters map[string]Adapter }

// NewRegistry returns a registry of adapters with distinct names.
func NewRegistry(adapters ...Adapter) (*Registry, error) {
	r := &Registry{adapters: make(map[string]Adapter, len(adapters))}
	for _, a := range adapters {
		if _, twice := r.adapters[a.Name()]; twice || a.Name() == "" {
			return nil, fmt.Errorf("provider: the name %q is taken or empty", a.Name())
		}
		r.adapters[a.Name()] = a
	}
	return r, nil
}

// Adapter returns the adapter with that name.
func (r *Registry) Adapter(name string) (Adapter, bool) {
	a, ok := r.adapters[name]
	return a, ok
}

// Names returns the names in order.
func (r *Registry) Names() []string { return slices.Sorted(maps.Keys(r.adapters)) }
