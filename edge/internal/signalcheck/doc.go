// Package signalcheck owns checkStorefrontSignals, the dry run of recordStorefrontSignals: the same body is
// judged by the same rules, and every broken rule is named. It claims nothing, stores nothing and asks no
// store.
package signalcheck
