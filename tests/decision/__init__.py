"""Tests of how parts become one decision per scan."""
