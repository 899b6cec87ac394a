"""Sweeps: make and measure many releases of small tables in memory; publish none."""
