// Package clock owns the wall clock of the services. In ordinary builds Now is time.Now. In builds with the
// tag "chaos" the variable CHAOS_CLOCK_OFFSET, a duration, shifts it, so that a fault test can run a process
// on a machine whose clock is wrong.
package clock
