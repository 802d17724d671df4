"""Tests of what follows from statistics."""
