"""Pretraining with Lightning: equal data, exact resumption."""
