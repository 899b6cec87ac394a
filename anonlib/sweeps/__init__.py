"""Sweeps: many releases of small tables, made and measured in memory. None is published."""
