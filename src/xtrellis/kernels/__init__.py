"""Numba kernels: functions of plain arrays and numbers, compiled once and cached."""
