"""Techniques that use LIMIT and ORDER BY."""
