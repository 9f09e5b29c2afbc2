from .model_file import load_model as load_model
from .packing import ModelFileError as ModelFileError
