"""Techniques that use the joins of a query."""
