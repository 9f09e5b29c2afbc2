"""Evaluation: how good a classifier is on labelled rows, where it errs, and how far it knows."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
