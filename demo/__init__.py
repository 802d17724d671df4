"""The analyst's example of the pruning paper, on a generated lake: `make demo`."""
