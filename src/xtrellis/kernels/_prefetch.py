"""Asking for memory before it is needed.

A row's features are all over a table of weights that no cache holds, so that a pass over rows would
wait for most of them. What the next row needs is therefore asked for while this one is computed.
"""

import numba
from numba.core import cgutils, types
from numba.extending import intrinsic

from ._jit import part

FAR = 2**21  # bytes of a table, above which the nearer caches do not hold it
_LINE = 16  # numbers of four bytes in a line of a cache
_LINES = 4  # of a line of the table: the processor itself finds the ones that follow


def _fetch(typing_context, table, row, column):
    """Ask for the line of the cache with ``table[row, column]``, which may be used soon."""

    def generate(context, builder, signature, arguments):
        from llvmlite import ir

        kind = signature.args[0]
        array = context.make_array(kind)(context, builder, arguments[0])
        place = cgutils.get_item_pointer(
            context, builder, kind, array, list(arguments[1:]), wraparound=False
        )
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        function = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.VoidType(), [byte, number, number, number]),
            "llvm.prefetch.p0i8",
        )
        hints = [number(each) for each in (0, 3, 1)]  # to read; keep it near; data
        builder.call(function, [builder.bitcast(place, byte), *hints])
        return context.get_dummy_value()

    return types.none(table, types.intp, types.intp), generate


if numba.config.DISABLE_JIT:

    def _fetch(table, row, column):
        """Nothing: Python would take longer."""
else:
    _fetch = intrinsic(_fetch)


@part
def fetch_rows(indices, start, stop, table):
    """Ask for the lines of a table that a row's features have, or for where they begin."""
    last = min(table.shape[1], _LINES * _LINE)
    for p in range(start, stop):
        for j in range(0, last, _LINE):
            _fetch(table, indices[p], j)
