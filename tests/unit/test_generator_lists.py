"""The lists that the generator draws from."""

from anonlib.source import generator


def test_tables_keep_the_weights() -> None:
    table = generator._table((1, 2, 3), [(1, 0, 3), (0, 5, 0)], bits=4)
    assert table == [1] * 4 + [3] * 12 + [2] * 16


def test_names_are_not_repeated() -> None:
    first, half = generator.FIRST_NAMES, len(generator.FIRST_NAMES) // 2
    assert len(set(first[:half])) == len(set(first[half:])) == half == 64
    assert len(set(generator.LAST_NAMES)) == len(generator.LAST_NAMES)
    assert len(set(generator.ZIPS)) == generator.N_ZIPS
