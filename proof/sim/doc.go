// Package sim plays crashes against the product's own lock algorithm and its own
// guard, in simulated time: schedules of one seed each (package schedule), in a world
// of masters, clients and guards (package world), with the product's rules or with one
// of them broken (package mutant). Nothing waits, nothing is contacted, and one seed is
// one schedule on every machine. Package small visits all states of small models.
//
// A violation is shortened before it is shown: faults, clients and attempts are
// left out, delays made short and numbers round, as long as the same property is
// still broken.
package sim
