"""The recoder of a column for which the config names none."""

import pyarrow as pa

from anonlib.schema import Scale

_BY_SCALE = {Scale.CONTINUOUS: "centroid", Scale.ORDINAL: "median", Scale.NOMINAL: "mode"}


def default_recoder(scale: Scale, column: pa.DataType) -> str:
    """The name of the recoder for a column of this scale and type. So far no type asks for another
    one than its scale does; whether the recoder takes the type, its `output` says."""
    return _BY_SCALE[scale]
