// Package engine owns the HTTP client of the engine: the calls recordInteractions and observeEntities of
// engine.openapi.yaml. It reports whether a request left this machine and what came back; package deliver
// decides what that means. It follows no redirect, uses no proxy from the environment, and reads a bounded
// answer.
package engine
