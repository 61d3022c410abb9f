// Package views has a campaign, as a test, that asks every view of the program what it says of the
// same locks at the same moments: the console, a guard that watches locks, and the commands locks,
// who, status, history and replay. Meanwhile masters are killed and cordoned, and the operator is cut
// off from some of them, the clients are not.
//
// What a view says of a lock is reduced to a belief: who relies on it, and until when. A view that is
// asked now and then is compared with one that is followed all the time: how far away is the nearest
// moment at which that one said the same? More than 300 ms are a difference. The clients' own beliefs
// are compared too: no view may say that nobody relies on a lock while somebody does.
//
// The one weaker answer that is allowed: while the operator is cut off from a master, the operator's
// views may say "may be held" of a lock that the guard, which is not, knows to be held; docs/reliance.md
// lists what else a view cannot know.
package views
