"""Plots: the trellis, the choice of its width, and trade-offs, as in the paper's figures."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
