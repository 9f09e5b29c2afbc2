from .assignment import PathAssignment as PathAssignment
from .assignment import given_assignment as given_assignment
from .assignment import random_assignment as random_assignment
from .assignment import similarity_assignment as similarity_assignment
from .codebook import codewords as codewords
from .codebook import hamming_distance as hamming_distance
from .codebook import minimum_distance as minimum_distance
from .trellis import Trellis as Trellis
