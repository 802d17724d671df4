"""Random predicates, joins and orders, put to Spark and to secateur."""
