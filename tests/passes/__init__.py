"""Tests of the techniques, on plans and statistics as values."""
