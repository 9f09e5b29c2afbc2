"""Whether one sparse row can be classified as it is: a look at each of its numbers."""

import numpy as np

from ._jit import kernel

SOUND, OUT_OF_RANGE, NOT_FINITE, UNSORTED = 0, 1, 2, 3


@kernel
def row_fault(features, values, n_features):
    """The worst that is wrong with a row; features must be ascending, so none may occur twice."""
    last, sorted_, finite = np.int64(-1), True, True
    for p in range(features.size):
        feature = np.int64(features[p])
        if not 0 <= feature < n_features:
            return OUT_OF_RANGE
        sorted_ = sorted_ and feature > last
        finite = finite and np.isfinite(values[p])
        last = feature
    if not finite:
        return NOT_FINITE
    return SOUND if sorted_ else UNSORTED
