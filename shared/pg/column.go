package pg

// Column returns value(0) to value(n-1): one column of n rows, as unnest takes it.
func Column[V any](n int, value func(i int) V) []V {
	column := make([]V, n)
	for i := range column {
		column[i] = value(i)
	}
	return column
}
