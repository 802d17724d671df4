"""What happened, as one model and its renderers."""
