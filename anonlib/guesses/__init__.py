"""What a table's columns are taken for where nobody has said it, and the draft of a config."""
