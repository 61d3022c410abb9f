// Package views has a campaign, as a test, that compares what all views of the program say about
// the same locks at the same moments: the console, a guard that watches locks, and the commands
// locks, who, status, history and replay. Meanwhile masters are killed and cordoned, and the
// operator, but not the clients, is cut off from some of them.
//
// The answer of a view is reduced to who relies on the lock, and until when. A view that is asked
// now and then is compared with one that is read all the time: how far away is the nearest moment
// at which that one said the same? More than 300 ms is a difference. The clients' own knowledge is
// compared too: no view may say that nobody relies on a lock while somebody does.
//
// Where this process did not run for half of that, nothing is compared: how much is left out is
// printed, and more than a twentieth is a failure. The short campaign shares the processors with other
// tests: there a pause of 50 ms leaves out what follows for as long as a lock lasts, and no share fails.
// The comparison with the clients' own knowledge leaves out nothing.
//
// One weaker answer is allowed: while the operator is cut off from a master and the guard is not,
// the operator's views may say "may be held" where the guard knows that the lock is held.
// docs/reliance.md lists what else a view cannot know.
package views
