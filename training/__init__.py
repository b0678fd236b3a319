"""Recipes and entry points that are run from a checkout."""
