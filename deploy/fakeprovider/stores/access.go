package stores

import (
	"strings"
	"sync"
)

// State is what a merchant or a provider did with an installation.
type State string

// The states of an installation.
const (
	Active      State = "active"
	Suspended   State = "suspended"   // unpaid: every call is answered 402
	Uninstalled State = "uninstalled" // the tokens that were used so far are dead
)

// Verdict is what a token opens.
type Verdict int

// The verdicts.
const (
	Open Verdict = iota
	Unknown
	Unpaid
)

// TokenPrefix begins every access token that the fakes know.
const TokenPrefix = "demo-"

// Access decides who may call for one store: every token that begins with TokenPrefix and was not revoked.
type Access struct {
	mu      sync.Mutex
	state   State
	used    map[string]struct{}
	revoked map[string]struct{}
}

// Check judges one call. A token that is new after an uninstallation installs the app again.
func (a *Access) Check(token string) Verdict {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, dead := a.revoked[token]; dead || !strings.HasPrefix(token, TokenPrefix) {
		return Unknown
	}
	if a.state == Uninstalled {
		a.state = Active
	}
	if a.used == nil {
		a.used = map[string]struct{}{}
	}
	a.used[token] = struct{}{}
	if a.state == Suspended {
		return Unpaid
	}
	return Open
}

// Set changes the state; an uninstallation revokes every token that was used.
func (a *Access) Set(s State) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.state = s
	if s == Uninstalled {
		if a.revoked == nil {
			a.revoked = map[string]struct{}{}
		}
		for token := range a.used {
			a.revoked[token] = struct{}{}
		}
		a.used = nil
	}
}
