"""Tests of the way to the JVM and back."""
