"""What both engines decide alike by the figures that they count: limits, refusals, the controllers
of a table, what is suppressed."""
