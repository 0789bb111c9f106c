// Package trail follows each signal of the demo shop: minted in the page, stored in the browser, sent,
// answered, created at the engine. It owns the rows of the panel "What happened" and the count that must stay
// true: as many signals at the engine as were minted. It believes the page only about what happens in the
// page; the rest comes from the proxy before the edge and from the engine.
package trail
