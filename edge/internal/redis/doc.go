// Package redis owns what the edge keeps in Redis: the claims of signals and the statuses of claim attempts
// (Claims), the grants of storefront keys (Keys), and copies of items (Items). It implements the stores and
// caches that packages claims, access and itemread declare, and decides nothing. When everything in Redis is
// lost, answers are slower and no data is lost.
package redis
