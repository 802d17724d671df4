"""What follows from statistics."""
