"""The readers, one for each table format."""
