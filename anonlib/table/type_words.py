"""Words for types, as digests need them: values of different kinds can have the same hash, as 1.50
and 150, or a date and a number of days."""

from typing import TypeAlias

import pyarrow as pa

#: As JSON has it: a word, null where nothing is known, or a list: what holds values, then the words
#: of what it holds; of a struct, pairs of names and words.
TypeWords: TypeAlias = "str | list[TypeWords] | None"


def spell_type(type: pa.DataType) -> TypeWords:
    """The words of a type. Types that hold the same values have the same words."""
    at = pa.types
    if at.is_null(type):
        return None
    if at.is_dictionary(type) or at.is_run_end_encoded(type):
        return spell_type(type.value_type)
    if at.is_struct(type):
        return ["struct", *([field.name, spell_type(field.type)] for field in type)]
    if at.is_map(type):
        return ["map", spell_type(type.key_type), spell_type(type.item_type)]
    if at.is_nested(type):
        return ["list", spell_type(type.value_type)]
    if at.is_decimal(type):
        return f"decimal, scale {type.scale}" if type.scale else "whole number"
    tests = (at.is_boolean, at.is_integer, at.is_floating, at.is_date, at.is_timestamp)
    words = ("true or false", "whole number", "floating number", "date", "time")
    return next((word for test, word in zip(tests, words, strict=True) if test(type)), "text")


def spell_column(column: pa.ChunkedArray) -> TypeWords:
    """The words of a column's type; None if it has no value, so that its type does not matter."""
    return None if column.null_count == len(column) else spell_type(column.type)


def may_be_same(words: TypeWords, others: TypeWords) -> bool:
    """Whether two types are the same, or one is not known."""
    if words is None or others is None:
        return True
    if isinstance(words, list) and isinstance(others, list):
        return len(words) == len(others) and all(map(may_be_same, words, others))
    return words == others


def are_type_words(words: object) -> bool:
    """Whether JSON is that of `TypeWords`."""
    if isinstance(words, list):
        return all(map(are_type_words, words))
    return words is None or isinstance(words, str)
