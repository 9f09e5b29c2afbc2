"""xtrellis: extreme multiclass classification on trellis graphs.

Classes are the source-to-sink paths of a small graph, one binary learner per edge is trained, and a
shortest path decodes. Everything else is public in its folder: ``xtrellis.graph``,
``xtrellis.learning``, ``xtrellis.decoding``, ``xtrellis.selection``, ``xtrellis.data`` and
``xtrellis.plots``.

Names are imported on first use, so that ``import xtrellis`` is instant.
"""

import lazy_loader as lazy

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
