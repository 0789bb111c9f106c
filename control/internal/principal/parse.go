package principal

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// MinTokenLength is the shortest token that a principal may have, in characters.
const MinTokenLength = 32

// maxValues is how many values one principal may have at a time: the current one and the next.
const maxValues = 2

// CustomProvider is the provider of connections that a custom connector feeds. No connector principal has it.
const CustomProvider = "custom"

// Tokens are the settings that Parse reads. An empty Backend or Engine leaves that door unmounted.
type Tokens struct {
	Connectors string // "provider:token[|next],provider2:token", at least one
	Backend    string // "token[|next]"
	Engine     string // "token[|next]"
}

// Parse makes the keyring. It reports every fault at once and never quotes a token.
func Parse(t Tokens) (*Keyring, error) {
	p := parser{providerForm: regexp.MustCompile(`^[a-z][a-z0-9_-]{0,31}$`), seen: make(map[[sha256.Size]byte]bool)}
	p.connectors(t.Connectors)
	p.optional(Identity{Door: Backend}, t.Backend)
	p.optional(Identity{Door: Engine}, t.Engine)
	if len(p.faults) > 0 {
		return nil, errors.Join(p.faults...)
	}
	return &Keyring{entries: p.entries}, nil
}

type parser struct {
	providerForm *regexp.Regexp
	entries      []entry
	seen         map[[sha256.Size]byte]bool
	faults       []error
}

func (p *parser) fault(format string, args ...any) {
	p.faults = append(p.faults, fmt.Errorf(format, args...))
}

func (p *parser) connectors(setting string) {
	if strings.TrimSpace(setting) == "" {
		p.fault("the connector principal is mandatory: set at least one provider:token")
		return
	}
	providers := make(map[string]bool)
	for i, part := range strings.Split(setting, ",") {
		provider, values, ok := strings.Cut(strings.TrimSpace(part), ":")
		if !ok || !p.providerForm.MatchString(provider) || provider == CustomProvider {
			p.fault("connector %d: want provider:token[|next] with a provider of [a-z0-9_-] other than %q", i+1, CustomProvider)
			continue
		}
		if providers[provider] {
			p.fault("connector %q: named twice; give both values as provider:token|next", provider)
			continue
		}
		providers[provider] = true
		p.values(Identity{Door: Connector, Provider: provider}, values)
	}
}

func (p *parser) optional(id Identity, setting string) {
	if setting = strings.TrimSpace(setting); setting != "" {
		p.values(id, setting)
	}
}

func (p *parser) values(id Identity, setting string) {
	name := id.Door.String()
	if id.Provider != "" {
		name += " " + id.Provider
	}
	values := strings.Split(setting, "|")
	if len(values) > maxValues {
		p.fault("%s: at most %d values, the current and the next", name, maxValues)
		return
	}
	for _, value := range values {
		p.value(id, name, value)
	}
}

func (p *parser) value(id Identity, name, value string) {
	if len(value) < MinTokenLength || strings.ContainsFunc(value, unfit) {
		p.fault("%s: a token is at least %d visible ASCII characters", name, MinTokenLength)
		return
	}
	digest := sha256.Sum256([]byte(value))
	if p.seen[digest] {
		p.fault("%s: the same token is set twice", name)
		return
	}
	p.seen[digest] = true
	p.entries = append(p.entries, entry{digest: digest, identity: id})
}

// unfit reports a character that cannot be sent as a bearer token.
func unfit(r rune) bool { return r <= ' ' || r > '~' }
