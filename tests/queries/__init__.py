"""The same query with secateur and without: the same rows, and fewer files."""
