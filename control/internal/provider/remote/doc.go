// Package remote owns one call to a provider's API: it takes the store's turn at the gate, sends through the guard, tells
// the gate what the answer said about the store's budget, and gives the answer its meaning as an error of package
// provider. It refuses to retry and to read bodies beyond whether they are JSON.
package remote
