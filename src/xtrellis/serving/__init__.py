"""Serving: a fitted model behind HTTP, with a page to try it. Needs ``xtrellis[serve]``."""
