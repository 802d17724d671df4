"""Measurements, as ratios against plain Spark in the same run: `make bench`."""
