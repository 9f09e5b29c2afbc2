"""The slice width for a number of classes, where none is given."""

FEW_CLASSES = 256  # up to which an SVM for each class is more accurate, and as small and fast


def default_slice_width(n_classes: int) -> int:
    """Width for a number of classes: two slices up to a million classes, then three, and so on.

    It is the smallest b with b**m >= K, for the smallest number m >= 2 of slices that keeps b at
    or below 1,000. Two slices are the most accurate; beyond a million classes the block of the
    source, which sees all rows and has b edges, would take too long.

    Examples
    --------
    >>> from xtrellis.selection import default_slice_width
    >>> [default_slice_width(k) for k in (2, 3, 150, 1_597, 31_102, 1_000_000)]
    [2, 2, 13, 40, 177, 1000]
    """
    slices = 2
    while 1_000**slices < n_classes:
        slices += 1
    width = max(2, int(n_classes ** (1 / slices)) - 1)  # the root in floating point is near
    while width**slices < n_classes:
        width += 1
    return min(width, n_classes)
