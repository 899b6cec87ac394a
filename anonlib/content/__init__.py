"""The content gate: which released columns show who a person is.

Its rules, the forms of values that it compares, and its counts in memory. Those in Spark are in
`anonlib/run/content.py`.
"""
