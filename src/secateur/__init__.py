"""Makes Spark read only the files that a query needs."""
