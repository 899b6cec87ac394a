"""Measures of how useful a release is: fidelity to its source, learning, clustering."""
