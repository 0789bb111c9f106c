// Package httpapi owns the internal surface as HTTP: its paths, who may call them, how bodies are read, and
// how answers and problems are written. A handler decodes, calls one use case and encodes; it makes no
// decision. Bodies, tokens and paths are never logged.
//
// The checks of a request come in the order path (404, 405), credential (401), body (400, 413, 422), stored
// state.
package httpapi
