"""Tests of the handle, and of what happens when something breaks."""
