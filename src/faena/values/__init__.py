"""Durations, names, numbers, ids: the values that everything else is made of."""
