"""What tells a direct identifier: by the values of a column, and by the words of its name."""
