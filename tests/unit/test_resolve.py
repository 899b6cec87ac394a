"""The config's columns against the source's: what is wrong is found, all of it, and named."""

from typing import Any, ClassVar

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DayTimeIntervalType,
    NullType,
    StructField,
    YearMonthIntervalType,
)

from anonlib.config.model import RESERVED_PREFIX, Config, bind_models
from anonlib.config.reading import parse
from anonlib.config.resolve import find_joint_columns, resolve, with_ids
from anonlib.errors import ConfigError
from anonlib.kernels import Kernel
from anonlib.spark.values import read_field
from anonlib.table.schema import Field, Role, Scale, Schema
from tests.support import OneCell

MAP = Field("m", "map<string,int>", pa.map_(pa.string(), pa.int32()))


class ByTarget(OneCell):
    """One that looks at the target."""

    type: ClassVar[str] = "by_target"

    @property
    def needs_target(self) -> bool:
        return True


class ByClass(OneCell):
    """One that looks at the classes of the target."""

    type: ClassVar[str] = "by_class"

    @property
    def needs_classes(self) -> bool:
        return True


def quasi(scale: str, **more: Any) -> dict[str, Any]:
    return {"role": "quasi_identifier", "scale": scale, **more}


def config(attributes: dict[str, Any], **changes: Any) -> Config:
    base = {
        "source": {"format": "parquet", "path": "in"},
        "attributes": {"age": quasi("continuous"), **attributes},
        "one_row_per_person": True,
        "privacy": {"models": [{"type": "k_anonymity", "k": 5}]},
        "kernel": OneCell(),
        "release": {"path": "out"},
    }
    return parse({**base, **changes})


AGE = Field("age", "int", pa.int32())
TEXT = pa.string()


def problems(found: Config, *fields: Field) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        resolve(found, [AGE, *fields])
    return [str(problem) for problem in caught.value.problems]


def test_columns_in_the_source_s_order() -> None:
    made = config(
        {
            "town": quasi("nominal"),
            "school": quasi("ordinal", order=["low", "high"]),
            "ssn": {"role": "identifier", "pseudonym": True},
            "name": {"role": "identifier"},
            "illness": {"role": "sensitive"},
            "label": {"role": "target", "public": True},
            "note": {"role": "insensitive"},
            "gone": {"role": "drop"},
        },
        pseudonyms={"key_env": "KEY"},
        one_row_per_person="ssn",
        recode={"columns": {"town": "set"}},
        privacy={"models": [{"type": "k_anonymity", "k": 5}, {"type": "l_diversity", "l": 2}]},
    )
    fields = [
        Field("note", "map<string,int>", MAP.arrow),  # what is released as it is may be nested
        Field("gone", "void", None),
        *[Field(n, "string", TEXT) for n in ("label", "illness", "name", "ssn", "school", "town")],
        AGE,
    ]
    schema = resolve(made, fields)
    names = {column.id: column.name for column in schema.columns}
    assert names == {
        "c0": "note",
        "c2": "label",
        "c3": "illness",
        "c4": "name",
        "c5": "ssn",
        "c6": "school",
        "c7": "town",
        "c8": "age",
    }
    assert [c.name for c in schema.quasi_identifiers] == ["school", "town", "age"]
    assert [c.name for c in schema.released] == [n for n in names.values() if n != "name"]
    assert schema.protected == ("c3",)
    assert schema.unit == ()
    assert schema["school"].order == ("low", "high")
    assert (schema["age"].scale, schema["age"].recoder.type) == (Scale.CONTINUOUS, "centroid")
    assert schema["town"].recoder.type == "set"
    assert schema["town"].released_type == pa.list_(TEXT)
    assert schema["ssn"].released_type == TEXT
    assert schema["label"].role is Role.TARGET
    assert schema.by_id("c8").name == "age"


def test_unit_columns_are_kept_though_dropped() -> None:
    made = config(
        {"person": {"role": "drop"}, "visit": {"role": "identifier"}},
        one_row_per_person=False,
        unit=["visit", "person"],
    )
    schema = resolve(made, [AGE, Field("person", "int", pa.int64()), Field("visit", "int", TEXT)])
    assert schema.unit == ("c2", "c1")  # in the config's order
    assert [c.name for c in schema.released] == ["age"]


def test_missing_column() -> None:
    assert problems(config({"town": {"role": "drop"}})) == [
        "attributes.town: the source has no such column"
    ]


def test_a_first_row_behind_the_header_is_not_shown() -> None:
    """A header that has lost the end of its line has the values of the first row among its names.
    In other formats names are no part of the rows."""
    fields = [Field(name, "string", TEXT) for name in ("town", "RAWVALUE", "raw", "31")]
    columns = {"town": {"role": "drop"}}
    (told,) = problems(config(columns, source={"format": "csv", "path": "in"}), *fields)
    assert told.startswith("source: 3 of its 5 columns have no role")
    assert "RAWVALUE" not in told
    named = problems(config(columns, source={"format": "json", "path": "in"}), *fields)
    assert any(text.startswith("column RAWVALUE: has no role") for text in named)


def test_a_first_row_instead_of_a_header_is_not_shown() -> None:
    fields = [Field(name, "string", TEXT) for name in ("RAWVALUE", "raw", "31")]
    with pytest.raises(ConfigError) as refused:
        resolve(config({}), fields)
    assert str(refused.value) == (
        "source: none of its 3 columns is among the 1 under `attributes`; is it the right table, "
        "with a header?"
    )


def test_column_without_a_role() -> None:
    (text,) = problems(config({}), Field("extra", "int", pa.int32()))
    assert text.startswith("column extra: has no role")
    assert all(role in text for role in Role)


def test_names_that_differ_in_case_only() -> None:
    found = problems(config({}), Field("Age", "int", pa.int32()))
    assert "column age: another column of the source differs in case only; rename one" in found
    assert "column Age: another column of the source differs in case only; rename one" in found


def test_names_of_our_own() -> None:
    found = problems(config({}), Field(f"{RESERVED_PREFIX}x", "int", pa.int32()))
    assert any("are reserved" in text for text in found)


@pytest.mark.parametrize("role", ["identifier", "insensitive", "sensitive"])
def test_type_that_arrow_lacks(role: str) -> None:
    assert problems(config({"x": {"role": role}}), Field("x", "interval", None)) == [
        "column x: type interval is not supported; give it `role: drop`"
    ]


def test_controllers_of_a_type_that_arrow_lacks() -> None:
    steps = {"steps": [{"type": "controller", "column": "x"}]}
    assert problems(config({"x": {"role": "drop"}}, partition=steps), Field("x", "t", None)) == [
        "column x: type t can't name data controllers"
    ]


@pytest.mark.parametrize("scale", list(Scale))
def test_map_as_quasi_identifier(scale: str) -> None:
    more = {"order": ["a", "b"]} if scale == "ordinal" else {}
    assert problems(config({"m": quasi(scale, **more)}), MAP) == [
        "column m: type map<string,int> can't be anonymized; it can be insensitive or dropped"
    ]


#: Types that Spark hands to Arrow, and Delta can't hold.
UNSTORABLE = {
    "interval day to second": pa.duration("us"),
    "time(6)": pa.time64("ns"),
    "array<interval day to second>": pa.list_(pa.duration("us")),
    "map<string,void>": pa.map_(TEXT, pa.null()),
    "map<string,time(6)>": pa.map_(TEXT, pa.time64("ns")),
    "struct<a:int,b:array<time(6)>>": pa.struct(
        [("a", pa.int32()), ("b", pa.list_(pa.time64("ns")))]
    ),
}


@pytest.mark.parametrize("type", UNSTORABLE)
def test_types_that_a_delta_table_cannot_hold(type: str) -> None:
    """Told before the work, for every role, with advice that helps."""
    field = Field("x", type, UNSTORABLE[type])
    roles = [{"role": role} for role in ("insensitive", "identifier", "sensitive")]
    for role in (*roles, {"role": "target", "public": True}, quasi("nominal")):
        assert problems(config({"x": role}), field) == [
            f"column x: type {type} is not supported; give it `role: drop`"
        ]
    assert [c.name for c in resolve(config({"x": {"role": "drop"}}), [AGE, field]).columns] == [
        "age"
    ]


@pytest.mark.parametrize(
    "type",
    [
        DayTimeIntervalType(),
        YearMonthIntervalType(),
        ArrayType(DayTimeIntervalType()),
        # Of `array()`: Arrow has no null that can't be null.
        ArrayType(NullType(), containsNull=False),
        ArrayType(NullType()),
    ],
    ids=lambda type: type.simpleString(),
)
def test_columns_of_spark_that_a_delta_table_cannot_hold(type: DataType) -> None:
    found = config({"x": {"role": "insensitive"}})
    (told,) = problems(found, read_field("x", StructField("x", type)))
    assert told.endswith(" is not supported; give it `role: drop`")


@pytest.mark.parametrize(
    "type",
    [
        pa.binary(),
        pa.null(),
        pa.struct([("a", pa.null())]),
        MAP.arrow,
        pa.list_(pa.list_(pa.date32())),
    ],
)
def test_types_that_a_delta_table_can_hold(type: pa.DataType) -> None:
    field = Field("x", "some", type)
    assert resolve(config({"x": {"role": "insensitive"}}), [AGE, field])["x"].released


def test_variants() -> None:
    """The audit can't count how rare they are: told before the work."""
    carried = pa.struct([("value", pa.binary()), ("metadata", pa.binary())])
    plain = config({"v": {"role": "insensitive"}})
    privacy = {"models": [{"type": "k_anonymity", "k": 5}], "acknowledge_unique": ["v"]}
    accepted = config({"v": {"role": "insensitive"}}, privacy=privacy)
    protected = config({"v": {"role": "sensitive"}})
    for type in ("variant", "array<variant>", "struct<a:int,b:variant>", "map<string,variant>"):
        field = Field("v", type, carried)
        (text,) = problems(plain, field)
        assert text.startswith(f"column v: type {type} can't be compared by value")
        assert resolve(accepted, [AGE, field])["v"].released
        for found, verb in ((protected, "be sensitive"), (config({"v": quasi("nominal")}), "be a")):
            (text,) = problems(found, field)
            assert text.startswith(f"column v: type {type} can't {verb}")
            assert text.endswith("insensitive if `privacy.acknowledge_unique` names it")
    assert resolve(plain, [AGE, Field("v", "struct<variant:int>", carried)])["v"].released


def test_map_as_sensitive_target_or_person() -> None:
    text = "column m: type map<string,int> can't be {}; it can be insensitive or dropped"
    assert problems(config({"m": {"role": "sensitive"}}), MAP) == [text.format("sensitive")]
    found = config({"m": {"role": "target", "public": True}})
    assert problems(found, MAP) == [text.format("target")]
    found = config({"m": {"role": "identifier"}}, one_row_per_person=False, unit=["m"])
    assert problems(found, MAP) == ["column m: type map<string,int> can't identify a person"]


def test_dropped_unit_of_a_type_that_arrow_lacks() -> None:
    """Advice to drop it would be no help: it is dropped."""
    found = config({"x": {"role": "drop"}}, one_row_per_person=False, unit=["x"])
    assert problems(found, Field("x", "interval", None)) == [
        "column x: type interval can't identify a person"
    ]


@pytest.mark.parametrize("type", [pa.binary(), MAP.arrow])
def test_pseudonyms_are_of_plain_values(type: pa.DataType) -> None:
    """Such values have no text to take an HMAC of."""
    attributes = {"x": {"role": "identifier", "pseudonym": True}}
    found = config(attributes, pseudonyms={"key_env": "KEY"}, one_row_per_person="x")
    (text,) = problems(found, Field("x", "some type", type))
    assert text == "column x: type some type can't become a pseudonym"


def test_text_as_continuous() -> None:
    (text,) = problems(config({"x": quasi("continuous")}), Field("x", "string", TEXT))
    assert text.startswith("column x: type string is not continuous; if these are numbers or dates")
    assert "`type: double`" in text


def test_boolean_as_continuous_or_ordinal() -> None:
    field = Field("x", "boolean", pa.bool_())
    assert problems(config({"x": quasi("continuous")}), field) == [
        "column x: type boolean is not continuous; use `scale: nominal`"
    ]
    assert problems(config({"x": quasi("ordinal")}), field) == [
        "column x: a boolean has no order; use `scale: nominal`"
    ]


def test_ordinal_text_without_order() -> None:
    assert problems(config({"x": quasi("ordinal")}), Field("x", "string", TEXT)) == [
        "attributes.x.order: required, since the column is text: all categories, low to high"
    ]


@pytest.mark.parametrize("type", [pa.int64(), pa.date32(), pa.decimal128(5, 2)])
def test_order_on_what_orders_itself(type: pa.DataType) -> None:
    found = config({"x": quasi("ordinal", order=["1", "2"])})
    assert problems(found, Field("x", "some type", type)) == [
        "attributes.x.order: only for text; type some type has an order of its own, remove it"
    ]
    assert resolve(config({"x": quasi("ordinal")}), [AGE, Field("x", "t", type)])["x"].by_category


def test_type_that_the_recoder_lacks() -> None:
    found = config({"x": quasi("nominal")}, recode={"columns": {"x": "mode"}})
    field = Field("x", "smallint unsigned", pa.uint16())
    (text,) = problems(found, field)
    assert text.startswith("column x: recoder mode can't take a column of type uint16")


def test_a_feed_of_changes_is_not_a_table() -> None:
    """It has the rows of persons who were deleted."""
    names = ("_change_type", "_commit_version", "_commit_timestamp")
    dropped = {name: {"role": "drop"} for name in names}
    fields = [Field(name, "string", TEXT) for name in names]
    for where in (None, "age > 3"):
        source = {"format": "delta", "path": "in", "where": where}
        (text,) = problems(config(dropped, source=source), *fields)
        assert text.startswith("source.where: the source is a feed of changes, which has rows that")
    source = {"format": "delta", "path": "in", "where": "_Change_type = 'insert'"}
    assert resolve(config(dropped, source=source), [AGE, *fields])["age"].released
    one = config({"_change_type": {"role": "drop"}})
    assert resolve(one, [AGE, fields[0]])["age"].released


@pytest.mark.parametrize(
    ("recoder", "kind"),
    [
        ({"type": "interval"}, "struct<lower: int32, upper: int32>"),
        ({"type": "set"}, "list<"),
        ({"type": "interval", "form": "text"}, ""),
        ({"type": "mode"}, ""),
    ],
)
def test_files_are_laid_out_by_single_values(recoder: dict[str, Any], kind: str) -> None:
    """Delta would refuse the release after all the work."""
    release = {"path": "out", "partition_by": ["x", "age"]}
    scale = "nominal" if recoder["type"] in ("set", "mode") else "continuous"
    found = config({"x": quasi(scale)}, recode={"columns": {"x": recoder}}, release=release)
    field = Field("x", "int", pa.int32())
    if kind:
        (text,) = problems(found, field)
        assert text.startswith("release.partition_by.0: column x is released with values of sever")
        assert kind in text
    else:
        assert resolve(found, [AGE, field])["x"].released
    nested = config({"m": {"role": "insensitive"}}, release={"path": "out", "partition_by": ["m"]})
    assert problems(nested, MAP)[0].startswith("release.partition_by.0: column m is released with")
    assert problems(nested, Field("m", "binary", pa.binary()))[0].startswith(
        "release.partition_by.0: column m is released as bytes"
    )


def test_several_problems_are_reported_together() -> None:
    found = config({"a": quasi("continuous"), "b": quasi("ordinal"), "c": {"role": "sensitive"}})
    fields = [
        Field("a", "string", TEXT),
        Field("b", "string", TEXT),
        Field("d", "int", pa.int32()),
    ]
    places = [text.split(":")[0] for text in problems(found, *fields)]
    assert places == ["attributes.b.order", "attributes.c", "column a", "column d"]


def test_models_are_bound_to_columns() -> None:
    model = {"type": "l_diversity", "l": 2}
    attributes = {"s": {"role": "sensitive"}, "t": {"role": "sensitive"}}
    k = {"type": "k_anonymity", "k": 5}
    found = config(attributes, privacy={"models": [k, model, {**model, "attribute": "s"}]})
    bound = bind_models(found.privacy.models, found.attributes)
    assert [getattr(m, "attribute", None) for m in bound] == [None, "s", "t"]  # each once
    schema: Schema = resolve(found, [Field("s", "string", TEXT), AGE, Field("t", "string", TEXT)])
    assert schema.protected == ("c0", "c2")
    named = with_ids(bound, schema)
    assert [getattr(m, "attribute", None) for m in named] == [None, "c0", "c2"]
    assert [type(m) for m in named] == [type(m) for m in bound]


def test_a_target_with_a_model_is_protected() -> None:
    k, l = {"type": "k_anonymity", "k": 5}, {"type": "l_diversity", "l": 2}  # noqa: E741
    models = [k, {**l, "attribute": "label"}]
    found = config({"label": {"role": "target"}}, privacy={"models": models})
    assert resolve(found, [AGE, Field("label", "string", TEXT)]).protected == ("c1",)


def test_joint_protects_what_is_known_too() -> None:
    """Sensitive columns without a model, and a target with one; not a public one."""
    diverse = {"type": "l_diversity", "l": 2, "attribute": "illness"}
    models = [{"type": "k_anonymity", "k": 5}, diverse]
    privacy = {"models": models, "joint": True}
    roles = {
        "illness": {"role": "sensitive"},
        "drug": {"role": "sensitive"},
        "label": {"role": "target", "public": True},
    }
    fields = [AGE, *[Field(name, "string", TEXT) for name in ("illness", "drug", "label")]]
    schema = resolve(config(roles, privacy=privacy), fields)
    assert (schema.protected, schema.joint) == (("c1", "c2"), True)
    models.append({**diverse, "attribute": "label"})
    found = config(roles, privacy=privacy)
    assert find_joint_columns(found.all_models, found.attributes, joint=True) == (
        "illness",
        "drug",
        "label",
    )
    assert resolve(found, fields).protected == ("c1", "c2", "c3")
    schema = resolve(config(roles, privacy={"models": models}), fields)
    assert (schema.protected, schema.joint) == (("c1", "c3"), False)


def target(**more: Any) -> dict[str, Any]:
    return {"label": {"role": "target", "public": True, **more}}


NUMBER = Field("label", "int", pa.int32())
WORDS = Field("label", "string", TEXT)


@pytest.mark.parametrize("kernel", [ByTarget(), ByClass()])
def test_kernel_that_needs_a_target(kernel: Kernel) -> None:
    assert problems(config({}, kernel=kernel)) == [
        f"kernel: {kernel.type} needs a target; give a column `role: target`"
    ]


@pytest.mark.parametrize(
    ("kernel", "field", "given", "scale"),
    [
        (OneCell(), NUMBER, None, None),
        (OneCell(), NUMBER, "nominal", None),
        (ByTarget(), NUMBER, None, Scale.CONTINUOUS),
        (ByTarget(), NUMBER, "nominal", Scale.NOMINAL),
        (ByTarget(), WORDS, None, Scale.NOMINAL),
        (ByTarget(), Field("label", "boolean", pa.bool_()), None, Scale.NOMINAL),
        (ByClass(), NUMBER, None, Scale.NOMINAL),
    ],
)
def test_scale_of_the_target(
    kernel: Kernel, field: Field, given: str | None, scale: Scale | None
) -> None:
    schema = resolve(config(target(scale=given), kernel=kernel), [AGE, field])
    assert schema["label"].scale is scale
    assert schema.target == (schema["label"] if scale else None)
    assert schema["label"].released_type == field.arrow


def test_target_that_can_not_have_its_scale() -> None:
    (text,) = problems(config(target(scale="continuous"), kernel=ByTarget()), WORDS)
    assert text.startswith("column label: type string is not continuous")
    assert problems(config(target(scale="continuous"), kernel=ByClass()), NUMBER) == [
        "attributes.label.scale: must be nominal: kernel by_class needs a target of classes"
    ]
    nested = Field("label", "map<string,int>", MAP.arrow)
    assert problems(config(target(scale="nominal"), kernel=ByTarget()), nested) == [
        "column label: type map<string,int> can't be target; it can be insensitive or dropped"
    ]


def test_a_missing_column_beside_one_of_nearly_its_name() -> None:
    """A column without a role first, then one that has its role under its own name, too."""
    misspelled = config({"agee": {"role": "drop"}})
    assert "attributes.agee: the source has no such column; did you mean age?" in problems(
        misspelled
    )
    near = problems(misspelled, Field("agees", "int", pa.int64()))
    assert "attributes.agee: the source has no such column; did you mean agees?" in near
