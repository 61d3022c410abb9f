package view

// Rows are the addresses of all elements, as columns of pointers take them.
func Rows[T any](all []T) []*T {
	rows := make([]*T, len(all))
	for i := range all {
		rows[i] = &all[i]
	}
	return rows
}

// Docs are the documents of rows.
func Docs[T, D any](rows []T, doc func(T) D) []D {
	docs := make([]D, len(rows))
	for i, r := range rows {
		docs[i] = doc(r)
	}
	return docs
}
