"""Sweeps: many releases of small tables in memory, tried and measured, none published."""
