"""Width selection: how wide a trellis to take for a number of classes."""


def default_slice_width(n_classes: int) -> int:
    """Width for a number of classes: two slices up to 40,000 classes, then three, and so on.

    The smallest b with b**m >= K, for the smallest number m >= 2 of slices that keeps b at or
    below 200. Measured in ``benchmarks/bench_widths.py``.

    Examples
    --------
    >>> from xtrellis import default_slice_width
    >>> [default_slice_width(k) for k in (2, 3, 150, 1_597, 31_102, 1_000_000)]
    [2, 2, 13, 40, 177, 100]
    """
    slices = 2
    while 200**slices < n_classes:
        slices += 1
    width = 2
    while width**slices < n_classes:
        width += 1
    return min(width, n_classes)
