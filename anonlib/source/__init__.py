"""Reads sources: files, tables, databases, DataFrames, the generator."""
