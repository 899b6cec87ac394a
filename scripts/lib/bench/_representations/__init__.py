"""The parts of `scripts/bench representations`."""
