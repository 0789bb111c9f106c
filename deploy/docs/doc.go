// Package docs checks the repository's documents: every relative link leads somewhere, every test that a
// decision record names exists, and no word that CHANGELOG.md calls retired is left in the code.
package docs
