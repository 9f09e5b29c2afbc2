from .datasets import fetch_paper_set as fetch_paper_set
from .datasets import load_icd10cm as load_icd10cm
from .datasets import load_wordnet as load_wordnet
from .readers import read_text as read_text
from .streams import DataError as DataError
from .svmlight import read_svmlight as read_svmlight
