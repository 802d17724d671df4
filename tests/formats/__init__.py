"""Tests of Delta and Iceberg, with tables that their own connectors wrote."""
