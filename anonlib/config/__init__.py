"""The config: its fields, how a file becomes one, and what can be wrong with it before a run."""
