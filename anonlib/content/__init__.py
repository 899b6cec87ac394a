"""The content gate: which released columns show who a person is.

Its rules, the forms of values that it compares, and the gate in memory; on Spark it is
`anonlib/run/content.py`.
"""
