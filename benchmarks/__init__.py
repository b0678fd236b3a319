"""This package beside its peers, in one run."""
