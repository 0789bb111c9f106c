// Package engine is the wire to the engine: two of the three calls of contract, section 4 (engine.openapi.yaml). It
// knows whether a request left this machine and what came back, and refuses to judge what that means: package deliver
// does. It follows no redirect, uses no proxy of the environment, and reads no more than a bounded answer.
package engine
