from .greedy import GreedyAssignment as GreedyAssignment
from .learners import Arow as Arow
from .learners import AveragedPerceptron as AveragedPerceptron
from .learners import Learner as Learner
from .learners import LinearSVM as LinearSVM
from .learners import SklearnLearner as SklearnLearner
