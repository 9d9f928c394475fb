"""One file a variant: its config, its modules, their cost and where they are installed."""
