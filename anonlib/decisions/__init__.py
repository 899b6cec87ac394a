"""What both engines decide alike by the figures that they count: limits, refusals, the values
that models count, the controllers of a table, what is suppressed."""
