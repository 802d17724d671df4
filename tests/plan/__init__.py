"""Tests of the query as values."""
