"""xtrellis: extreme multiclass classification on trellis graphs.

Classes are the source-to-sink paths of a small graph. One binary learner an edge, a shortest
path to decode: model size and prediction time grow with log K.

The public names are imported on first use, so that ``import xtrellis`` is instant.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .classifier import TrellisClassifier
    from .codebook import codewords, hamming_distance, minimum_distance
    from .datasets import fetch_paper_set, load_icd10cm, load_wordnet
    from .decoding import best_paths, k_best_paths, log_partition, path_log_probabilities
    from .ensemble import TrellisEnsemble
    from .learners import Arow, AveragedPerceptron, Learner, LinearSVM, SklearnLearner
    from .losses import LocalLoss, Loss, PathHinge, VertexSoftmax, get_loss
    from .ltls import LTLSClassifier
    from .model_file import load_model, save_model
    from .packing import ModelFileError
    from .path_assignment import (
        GreedyAssignment,
        PathAssignment,
        given_assignment,
        random_assignment,
        similarity_assignment,
    )
    from .plots import draw_trade_off, draw_trellis, draw_widths
    from .pruning import held_out_threshold
    from .readers import read_text
    from .sources import DataError
    from .svmlight import read_svmlight
    from .text import TrellisTextClassifier
    from .trellis import Trellis
    from .width_selection import (
        WidthSelection,
        WidthTrial,
        default_slice_width,
        select_slice_width,
    )

_HOME = {
    "Trellis": "trellis",
    "codewords": "codebook",
    "hamming_distance": "codebook",
    "minimum_distance": "codebook",
    "PathAssignment": "path_assignment",
    "GreedyAssignment": "path_assignment",
    "given_assignment": "path_assignment",
    "random_assignment": "path_assignment",
    "similarity_assignment": "path_assignment",
    "Loss": "losses",
    "LocalLoss": "losses",
    "PathHinge": "losses",
    "VertexSoftmax": "losses",
    "get_loss": "losses",
    "best_paths": "decoding",
    "k_best_paths": "decoding",
    "log_partition": "decoding",
    "path_log_probabilities": "decoding",
    "draw_trellis": "plots",
    "draw_trade_off": "plots",
    "draw_widths": "plots",
    "TrellisClassifier": "classifier",
    "WidthSelection": "width_selection",
    "WidthTrial": "width_selection",
    "default_slice_width": "width_selection",
    "ModelFileError": "packing",
    "load_model": "model_file",
    "save_model": "model_file",
    "select_slice_width": "width_selection",
    "held_out_threshold": "pruning",
    "LTLSClassifier": "ltls",
    "TrellisEnsemble": "ensemble",
    "TrellisTextClassifier": "text",
    "Learner": "learners",
    "LinearSVM": "learners",
    "Arow": "learners",
    "AveragedPerceptron": "learners",
    "SklearnLearner": "learners",
    "DataError": "sources",
    "read_svmlight": "svmlight",
    "read_text": "readers",
    "load_icd10cm": "datasets",
    "load_wordnet": "datasets",
    "fetch_paper_set": "datasets",
}

__all__ = [
    "Arow",
    "AveragedPerceptron",
    "DataError",
    "GreedyAssignment",
    "LTLSClassifier",
    "Learner",
    "LinearSVM",
    "LocalLoss",
    "Loss",
    "ModelFileError",
    "PathAssignment",
    "PathHinge",
    "SklearnLearner",
    "Trellis",
    "TrellisClassifier",
    "TrellisEnsemble",
    "TrellisTextClassifier",
    "VertexSoftmax",
    "WidthSelection",
    "WidthTrial",
    "__version__",
    "best_paths",
    "codewords",
    "default_slice_width",
    "draw_trade_off",
    "draw_trellis",
    "draw_widths",
    "fetch_paper_set",
    "get_loss",
    "given_assignment",
    "hamming_distance",
    "held_out_threshold",
    "k_best_paths",
    "load_icd10cm",
    "load_model",
    "load_wordnet",
    "log_partition",
    "minimum_distance",
    "path_log_probabilities",
    "random_assignment",
    "read_svmlight",
    "read_text",
    "save_model",
    "select_slice_width",
    "similarity_assignment",
]


def __getattr__(name: str) -> Any:
    """Import a public name from its home the first time it is asked for."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
