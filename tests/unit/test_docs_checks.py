"""docs/operations/checks.md: its commands are commands, and its SQL finds what it is to find."""

import ast
import re
import shlex
from pathlib import Path

import duckdb
import pandas as pd
import pytest
import yaml

from anonlib.cli.example import TABLE
from anonlib.cli.parser import parse_args
from tests.texts import ROOT, fenced

PAGE = (ROOT / "docs/operations/checks.md").read_text("utf-8")
BLOCKS = {block.language: block.text for block in fenced(PAGE) if block.language != "yaml"}
ACTION, SOURCES = [yaml.safe_load(b.text) for b in fenced(PAGE) if b.language == "yaml"]


def test_commands() -> None:
    steps = ACTION["jobs"]["audit"]["steps"]
    call = next(
        node
        for node in ast.walk(ast.parse(BLOCKS["python"]))
        if isinstance(node, ast.keyword) and node.arg == "bash_command"
    )
    assert isinstance(call.value, ast.Constant)
    lines = [BLOCKS[""], *[step["run"] for step in steps if "run" in step], str(call.value.value)]
    ours = [line.split(">")[0] for line in lines if line.startswith("anonlib ")]
    parsed = [parse_args(shlex.split(line)[1:], "1") for line in ours]
    assert [(args.verb, args.format) for args in parsed] == [
        ("audit", "junit"),
        ("audit", "junit"),
        ("audit", "text"),
    ]


def test_the_table_of_dbt_is_that_of_the_example() -> None:
    (source,) = SOURCES["sources"]
    (table,) = source["tables"]
    assert f"source('{source['name']}', '{table['name']}')" in BLOCKS["sql"]
    place = re.findall(r"'(.*)'", table["config"]["meta"]["external_location"])
    assert place == [f"{Path(TABLE).parent}/released"]


@pytest.mark.parametrize(("n", "diagnoses", "found"), [(10, "ab", 0), (9, "ab", 1), (10, "a", 1)])
def test_the_sql_finds_classes_that_break_a_model(n: int, diagnoses: str, found: int) -> None:
    one = {"age": [{"lower": 1, "upper": 2}], "zip": [["a", "b"]], "sex": ["f"]}
    rest = {"marital_status": ["m"], "education": ["none"], "hours": [1.0]}
    small = pd.concat([pd.DataFrame(one | rest)] * n, ignore_index=True)
    small["diagnosis"] = [diagnoses[i % len(diagnoses)] for i in range(n)]
    sound = small.assign(sex="m")
    sound = pd.concat([sound.assign(diagnosis="a"), sound.assign(diagnosis="b")])
    people = pd.concat([small, sound])
    query = re.sub(r"\{\{.*\}\}", "people", BLOCKS["sql"])
    connection = duckdb.connect()
    connection.register("people", people)
    assert len(connection.sql(query).fetchall()) == found
