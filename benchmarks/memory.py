"""How much memory a process has used."""

import resource


def peak_gib() -> float:
    """Returns the most memory that this process has had, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
