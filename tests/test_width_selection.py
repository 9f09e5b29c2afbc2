"""The default width: about the square root of K, then the third, and so on."""

from xtrellis import default_slice_width


def test_default_width():
    assert [default_slice_width(k) for k in (2, 3, 4, 5, 100, 101)] == [2, 2, 2, 3, 10, 11]
    assert default_slice_width(10**12) <= 200
