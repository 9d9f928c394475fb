"""From sources of text to memory-mapped token files."""
