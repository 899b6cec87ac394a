"""The parts of `scripts/bench ta_da`: what both of its halves share, and the halves."""
