from .default_width import default_slice_width as default_slice_width
from .diagnostics import Diagnosis as Diagnosis
from .diagnostics import diagnose as diagnose
from .width_trials import WidthSelection as WidthSelection
from .width_trials import WidthTrial as WidthTrial
from .widths import select_slice_width as select_slice_width
