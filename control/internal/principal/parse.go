package principal

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"storefront.internal/shared/settings"
)

// MinTokenLength is the shortest token of a principal, in characters.
const MinTokenLength = 32

// maxValues is the most tokens of a principal: the current one and the next.
const maxValues = 2

// CustomProvider is the provider of custom connections. No connector principal has it.
const CustomProvider = "custom"

// Tokens are the settings that Parse reads. An empty Backend or Engine leaves that role without tokens.
type Tokens struct {
	Connectors string // "provider:token[|next],provider2:token", at least one
	Backend    string // "token[|next]"
	Engine     string // "token[|next]"
}

// Parse returns the keyring. It reports all errors and quotes no token.
func Parse(t Tokens) (*Keyring, error) {
	p := newParser()
	p.connectors(t.Connectors)
	p.optional(Identity{Role: Backend}, t.Backend)
	p.optional(Identity{Role: Engine}, t.Engine)
	if len(p.errs) > 0 {
		return nil, errors.Join(p.errs...)
	}
	return &Keyring{entries: p.entries}, nil
}

// ConnectorTokens returns the current token of each provider of the setting that Parse reads, for a caller of
// control.
func ConnectorTokens(setting string) (map[string]settings.Secret, error) {
	p := newParser()
	p.connectors(setting)
	if len(p.errs) > 0 {
		return nil, errors.Join(p.errs...)
	}
	return p.current, nil
}

type parser struct {
	providerForm *regexp.Regexp
	entries      []entry
	current      map[string]settings.Secret // of each connector
	seen         map[[sha256.Size]byte]bool
	errs         []error
}

func newParser() *parser {
	return &parser{providerForm: regexp.MustCompile(`^[a-z][a-z0-9_-]{0,31}$`),
		current: make(map[string]settings.Secret), seen: make(map[[sha256.Size]byte]bool)}
}

func (p *parser) errorf(format string, args ...any) {
	p.errs = append(p.errs, fmt.Errorf(format, args...))
}

func (p *parser) connectors(setting string) {
	if strings.TrimSpace(setting) == "" {
		p.errorf("the connector principal is mandatory: set at least one provider:token")
		return
	}
	for i, part := range strings.Split(setting, ",") {
		provider, values, ok := strings.Cut(strings.TrimSpace(part), ":")
		if !ok || !p.providerForm.MatchString(provider) || provider == CustomProvider {
			p.errorf("connector %d: want provider:token[|next] with a provider of [a-z0-9_-] other than %q",
				i+1, CustomProvider)
			continue
		}
		if _, named := p.current[provider]; named {
			p.errorf("connector %q: named twice; give both values as provider:token|next", provider)
			continue
		}
		current, _, _ := strings.Cut(values, "|")
		p.current[provider] = settings.Secret(current)
		p.values(Identity{Role: Connector, Provider: provider}, values)
	}
}

func (p *parser) optional(id Identity, setting string) {
	if setting = strings.TrimSpace(setting); setting != "" {
		p.values(id, setting)
	}
}

func (p *parser) values(id Identity, setting string) {
	name := id.Role.String()
	if id.Provider != "" {
		name += " " + id.Provider
	}
	values := strings.Split(setting, "|")
	if len(values) > maxValues {
		p.errorf("%s: at most %d values, the current and the next", name, maxValues)
		return
	}
	for _, value := range values {
		p.value(id, name, value)
	}
}

func (p *parser) value(id Identity, name, value string) {
	if len(value) < MinTokenLength || strings.ContainsFunc(value, notTokenChar) {
		p.errorf("%s: a token is at least %d visible ASCII characters", name, MinTokenLength)
		return
	}
	digest := sha256.Sum256([]byte(value))
	if p.seen[digest] {
		p.errorf("%s: the same token is set twice", name)
		return
	}
	p.seen[digest] = true
	p.entries = append(p.entries, entry{digest: digest, identity: id})
}

// notTokenChar reports a character that cannot be sent as a bearer token.
func notTokenChar(r rune) bool { return r <= ' ' || r > '~' }
