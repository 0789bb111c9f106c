// Package deliver owns how deliveries go to the engine (contract, section 4): which answer means what, how long to
// wait after it, when a batch is split, when the whole engine is left alone. The queue itself, its leases and its
// counts belong to package deliveries of shared, the wire to package engine. It refuses to know HTTP's and SQL's
// drivers, and what a body says.
//
// A worker takes a lane, sends its deliveries, settles, and takes the next. A lane that holds deliveries which failed
// alone (an aside) sends each in a request of its own. Three things stop a worker from sending:
//
//	blocked    the engine answered 401: nobody sends with that credential until it is another one, or an operator
//	           allows a probe
//	breaker    per call of the engine: open after several failures in a row; then one delivery at a time probes, so
//	           that an outage does not use up the attempts of the backlog
//	disabled   no engine is configured: the relay only says so, and folds the counts
package deliver
