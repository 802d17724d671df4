"""Techniques that use the conditions of a query."""
