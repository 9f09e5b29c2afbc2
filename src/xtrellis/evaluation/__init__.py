"""Evaluation on labelled rows: how good a classifier is, and where it errs."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
