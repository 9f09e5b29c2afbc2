"""What can be wrong with one sparse row, and which fault is named first."""

import numpy as np
import pytest

from xtrellis.kernels.row_checks import NOT_FINITE, OUT_OF_RANGE, SOUND, UNSORTED, row_fault


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize(
    ("features", "values", "fault"),
    [
        ([], [], SOUND),
        ([0, 3, 9], [1.0, -2.0, 0.0], SOUND),
        ([3, 3], [1.0, 1.0], UNSORTED),
        ([3, 2], [1.0, 1.0], UNSORTED),
        ([10], [1.0], OUT_OF_RANGE),
        ([2, -1], [1.0, 1.0], OUT_OF_RANGE),
        ([4, 2], [1.0, np.inf], NOT_FINITE),
        ([2], [np.nan], NOT_FINITE),
        ([2, 10], [np.nan, 1.0], OUT_OF_RANGE),
    ],
)
def test_faults(features, values, fault, dtype):
    assert row_fault(np.array(features, dtype), np.array(values, np.float32), 10) == fault
