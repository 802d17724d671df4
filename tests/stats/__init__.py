"""Tests of what is known of files, and how it is collected and kept."""
