package stores

import (
	"net/http"
	"strings"
	"sync"
)

// State is what a merchant or a provider did with an installation.
type State string

// The states of an installation.
const (
	Active      State = "active"
	Suspended   State = "suspended"   // unpaid: every call is answered 402
	Uninstalled State = "uninstalled" // the tokens that were used so far are revoked
)

// TokenPrefix begins every access token that the fakes accept.
const TokenPrefix = "demo-"

// Access decides who may call for one store: every token that begins with TokenPrefix and was not revoked.
type Access struct {
	mu    sync.Mutex
	state State
	valid map[string]bool // tokens that were used; false after an uninstallation
}

// Check returns the status of a call: 200, 401 for an unknown token, 402 for a suspended store. A token that
// is new after an uninstallation installs the app again.
func (a *Access) Check(token string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	valid, used := a.valid[token]
	if used && !valid || !strings.HasPrefix(token, TokenPrefix) {
		return http.StatusUnauthorized
	}
	if a.valid == nil {
		a.valid = map[string]bool{}
	}
	a.valid[token] = true
	switch a.state {
	case Suspended:
		return http.StatusPaymentRequired
	case Uninstalled:
		a.state = Active
	}
	return http.StatusOK
}

// Set changes the state. An uninstallation revokes every token that was used.
func (a *Access) Set(s State) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.state = s
	if s == Uninstalled {
		for token := range a.valid {
			a.valid[token] = false
		}
	}
}
