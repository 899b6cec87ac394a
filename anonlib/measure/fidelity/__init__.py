"""Measures of what a release is still worth: fidelity to its source, learning, clustering."""
