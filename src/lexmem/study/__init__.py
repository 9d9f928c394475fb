"""Runs a study: DVC's stages in the order of their dependencies, several at a time."""
