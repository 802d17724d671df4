"""One attached Spark: the handle, the options, and what happens while a query is planned and runs."""
