package intake

import "slices"

// rival is a claim that someone else holds, as it was seen last.
type rival struct {
	holder
	value    string // the claim's value, for the compare-and-swap
	key      ClaimKey
	at       int // position among the contender's keys
	register Register
	stale    bool // the claim is older than the lease
}

// unsettled returns the keys that are neither held nor known, and their positions.
func (c *contender) unsettled() (keys []ClaimKey, at []int) {
	keys, at = c.scratchKeys[:0], c.scratchAt[:0]
	for i, s := range c.states {
		if s == unsettled {
			keys, at = append(keys, c.keys[i]), append(at, i)
		}
	}
	c.scratchKeys, c.scratchAt = keys, at
	return keys, at
}

// attempts returns the distinct attempts of the rivals that match.
func (c *contender) attempts(match func(*rival) bool) []string {
	var set []string
	for i := range c.rivals {
		if r := &c.rivals[i]; match(r) && !slices.Contains(set, r.attempt) {
			set = append(set, r.attempt)
		}
	}
	return set
}

// note keeps what was read of the attempts' registers.
func (c *contender) note(attempts []string, registers []Register) {
	for i := range c.rivals {
		r := &c.rivals[i]
		if at := slices.Index(attempts, r.attempt); at >= 0 {
			r.register = registers[at]
		}
	}
}

// verdict settles what is done, and says how to go on with the rest.
func (c *contender) verdict() round {
	v := settled
	for i := range c.rivals {
		r := &c.rivals[i]
		switch {
		case c.states[r.at] == mine:
		case r.register == Done:
			c.states[r.at] = known
		case r.register != Open: // someone else took it over before us
			v = max(v, again)
		case r.over(c.holder) && c.owns():
			v = max(v, yield)
		default:
			v = max(v, hold)
		}
	}
	return v
}
