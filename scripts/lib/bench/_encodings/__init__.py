"""The parts of `scripts/bench encodings`."""
