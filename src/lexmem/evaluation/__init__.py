"""Evaluation items, the harness that scores them, and held-out perplexity."""
