// Package recommend owns getRecommendations: it asks the engine which items to recommend, mints the Decision
// that later signals refer to, and answers. A failure behind it never fails the request: when the engine is
// late, failing or not configured, the fallback answers, and without a fallback the list is empty. The
// request does not wait until the Decision is recorded, because a Decision id proves itself by a MAC.
package recommend
