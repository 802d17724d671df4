"""Tests of what surrounds the library: documentation, demo, measurements, the tests themselves."""
