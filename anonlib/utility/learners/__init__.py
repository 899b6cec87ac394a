"""Models that learn from a release, the same in Spark ML and in scikit-learn. One file each."""
