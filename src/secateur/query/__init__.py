"""The query as values."""
