"""Everything that needs Spark: sessions, sources and sinks, kernels on blocks."""
