"""Settings all tests share."""

import signal

from hypothesis import settings

# Deterministic, and no deadline: the first example may compile a kernel.
settings.register_profile("xtrellis", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("xtrellis")

# A shell starts background jobs with Ctrl-C ignored, and so would be all that tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)
