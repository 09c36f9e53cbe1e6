"""Runs a node again on twins of its payload."""
