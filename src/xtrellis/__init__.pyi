__version__: str

from .classifier import TrellisClassifier as TrellisClassifier
from .data.datasets import load_icd10cm as load_icd10cm
from .data.datasets import load_wordnet as load_wordnet
from .ensemble import TrellisEnsemble as TrellisEnsemble
from .ltls import LTLSClassifier as LTLSClassifier
from .model.model_file import load_model as load_model
from .selection.widths import select_slice_width as select_slice_width
from .text import TrellisTextClassifier as TrellisTextClassifier
