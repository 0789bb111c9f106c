// Package httpapi owns the internal surface as HTTP (contract, sections 1 and 3): which paths exist, who may open them,
// how bodies are read and answers and problems are written. A handler decodes, calls one use case and encodes. It
// refuses to decide anything about keys, connections, observations or the queue, and it never logs a body, a token or a path.
//
// The order of the checks is path (404, 405), credential (401), body (400, 413, 422), and only then a store.
package httpapi
