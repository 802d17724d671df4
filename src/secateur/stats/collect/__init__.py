"""Reads statistics out of files."""
