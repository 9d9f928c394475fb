"""lexmem: where to put sparse parameters in a language model at equal training FLOPs."""
