"""The verbs of tables in hand: pandas, polars, Arrow, Spark."""
