// Package remote owns one call to a provider's API: it waits for the shop's rate limiter, sends the request,
// tells the limiter what the response says about the shop's limits, and turns the status into an error of
// package provider. It also has what the adapters share: JSON requests and the text of cursors. It does not
// retry.
package remote
