"""What is known of files."""
