"""What a table is to the rest: its schema, its private columns, and the blocks kernels work on."""
