"""The iso-FLOP ledger."""
