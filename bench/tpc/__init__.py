"""TPC-H, TPC-DS and a schema with cyclic joins: data in several layouts, query texts, and checks of answers."""
