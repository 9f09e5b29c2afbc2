"""Settings all tests share."""

from hypothesis import settings

# Deterministic, and no deadline: the first example may compile a kernel.
settings.register_profile("xtrellis", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("xtrellis")
