"""What the passes decide about each scan."""
