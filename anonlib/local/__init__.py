"""Tables in memory: their rows, their plan, the engine that releases them, what is wrong with them;
and the verb `cells`."""
