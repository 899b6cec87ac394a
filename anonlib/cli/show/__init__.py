"""What the command line prints: a file for each kind of result."""
