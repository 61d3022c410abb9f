package watch

const unannounced = "cannot announce itself, so that nobody sees that it watches"

const unresolved = "its name cannot be resolved, so that it would not be seen that it leads to another server"

const unheard = "the announcements of other guards cannot be read, so that only its own D counts here"
