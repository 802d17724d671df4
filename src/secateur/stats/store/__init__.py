"""Statistics that outlive the session."""
