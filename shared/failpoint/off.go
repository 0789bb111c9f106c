//go:build !chaos

package failpoint

// Hit does nothing in this build.
func Hit(string) {}
