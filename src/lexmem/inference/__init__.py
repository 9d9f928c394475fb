"""Decoding with a KV cache, storage tiers for lookup tables, and timing of both."""
