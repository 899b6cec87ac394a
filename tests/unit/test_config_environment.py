"""What variables of the environment can't be, or do, in configs and in sweep files."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from anonlib.config.reading import load_columns, parse
from anonlib.config.secrets import is_secret_variable
from anonlib.errors import ConfigError
from anonlib.sweeps.file import load_sweep, parse_sweep
from tests.unit.test_config_limits import good, refused

HUSH = "correct-horse"
JDBC = {"format": "jdbc", "options": {"url": "jdbc:postgresql://localhost/p", "dbtable": "people"}}


def filled(where: str, template: str) -> dict[str, Any]:
    """A config with the template at a field."""
    raw, (*sections, field) = good(), where.split(".")
    node = raw
    for section in sections:
        node = node.setdefault(section, {})
    node[field] = template
    return raw


class TestSecrets:
    @pytest.mark.parametrize(
        "name",
        [
            *("AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN", "AWS_PROFILE"),
            *("KEY", "LEDGER_KEY", "PSEUDONYM_KEYS", "APIKEY", "MASTER_KEY_2", "key"),
            *("PGPASSWORD", "DB_PASS", "PGPASS", "MYSQL_PWD", "SSH_PASSPHRASE", "VAULT_TOKEN"),
            *("AZURE_CLIENT_SECRET", "GOOGLE_APPLICATION_CREDENTIALS", "DB_CRED", "BASIC_AUTH"),
        ],
    )
    def test_by_name(self, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        monkeypatch.setenv(name, HUSH)
        for where in ("kernel", "release.path", "accountability.purpose", "seed", "release.run_id"):
            found = refused(filled(where, f"x${{{name}}}"))
            assert f"environment variable {name} holds a secret" in found[where]
            assert HUSH not in str(found)
        raw = good()
        raw["attributes"]["age"] = {
            "role": "quasi_identifier",
            "scale": "nominal",
            "hierarchy": f"${{{name}}}",
        }
        found = refused(raw)
        assert "holds a secret" in found["attributes.age.hierarchy"]
        assert HUSH not in str(found)

    @pytest.mark.parametrize(
        "name",
        [
            *("ANONLIB_DATA", "ANONLIB_DATE", "PEOPLE_URL", "PEOPLE_USER", "HOME", "PWD", "OLDPWD"),
            *("AWS_REGION", "AWS_DEFAULT_REGION", "PASSENGERS", "AUTHOR", "KEYBOARD", "DAY"),
        ],
    )
    def test_other_names(self, name: str) -> None:
        assert not is_secret_variable(name)

    def test_those_under_secrets(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOSPITAL", HUSH)
        monkeypatch.setenv("WHICH", "HOSPITAL")
        for name in ("HOSPITAL", "${WHICH}"):
            options = {**JDBC["options"], "user": "${HOSPITAL}"}
            found = refused(
                good(source={**JDBC, "options": options, "secrets": {"password": name}})
            )
            assert [*found] == ["source.options.user"]
            assert "environment variable HOSPITAL holds a secret" in found["source.options.user"]
            assert HUSH not in str(found)

    def test_columns_of_a_config(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        """Its source alone is read, its keys are secret all the same."""
        monkeypatch.setenv("LEDGER", HUSH)
        raw = good(
            source={"format": "csv", "path": "data/${LEDGER}"},
            release={"path": "out/${NOT_SET_ANYWHERE}", "ledger": {"key_env": "LEDGER"}},
        )
        path = tmp_path / "conf.yaml"
        path.write_text(yaml.safe_dump(raw))
        with pytest.raises(ConfigError, match="LEDGER holds a secret") as caught:
            load_columns(path, ["age"])
        assert [problem.where for problem in caught.value.problems] == ["source.path"]


class TestFields:
    """A value does no more than the field that it stands in."""

    @pytest.mark.parametrize(
        "value", ["a/b", "..", "a'b", 'a"b', "a?b", "a&b", "a;b", "$(x)", "a<b"]
    )
    @pytest.mark.parametrize("where", ["release.register", "release.run_id", "source.format"])
    def test_anywhere(self, monkeypatch: pytest.MonkeyPatch, where: str, value: str) -> None:
        monkeypatch.setenv("VALUE", value)
        said = refused(filled(where, "${VALUE}"))[where]
        assert said.startswith("environment variable")
        assert value == ".." or value not in said

    def test_words(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("WHO", "ann@hospital.org, data office")
        config = parse(filled("accountability.approver", "by ${WHO}"))
        assert config.accountability.approver == "by ann@hospital.org, data office"

    def test_words_for_people(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("WHO", "Sinéad O'Neill (DPO); https://tickets/7?a=b")
        config = parse(filled("accountability.purpose", "for ${WHO}"))
        assert config.accountability.purpose == "for Sinéad O'Neill (DPO); https://tickets/7?a=b"

    @pytest.mark.parametrize("where", ["events", "accountability.runs"])
    def test_places(self, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
        monkeypatch.setenv("ROOT", "/data/../runs")
        monkeypatch.setenv("UP", "..")
        config = parse(filled(where, "${ROOT}/a"))
        assert "/data/../runs/a" in (config.events, config.accountability.runs)
        assert [*refused(filled(where, "/data/${UP}/x"))] == [where]

    @pytest.mark.parametrize(
        "value", ["h/p?a=b", "h;a=b", "h&a=b", "h:1/x", "u@h", "a b", "..", "a,b"]
    )
    def test_within_settings(self, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
        monkeypatch.setenv("HOST", value)
        for template in ("jdbc:postgresql://${HOST}/people", "jdbc:postgresql:x/${HOST}"):
            options = {**JDBC["options"], "url": template}
            found = refused(good(source={**JDBC, "options": options}))
            assert [*found] == ["source.options.url"]
        raw = good(spark={"conf": {"spark.local.dir": "/tmp/${HOST}"}})
        if value in ("a b", "a,b"):  # of folders, as in other paths
            assert parse(raw).spark.conf["spark.local.dir"] == f"/tmp/{value}"
        else:
            assert [*refused(raw)] == ["spark.conf.spark.local.dir"]

    def test_what_begins_a_setting(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PEOPLE_URL", "jdbc:postgresql://db:5432/p?sslmode=require&a=b")
        monkeypatch.setenv("HOST", "db.example:5432")
        for url, wanted in (
            ("${PEOPLE_URL:-jdbc:x}", "jdbc:postgresql://db:5432/p?sslmode=require&a=b"),
            ("jdbc:postgresql://${HOST}/p", "jdbc:postgresql://db.example:5432/p"),
        ):
            config = parse(good(source={**JDBC, "options": {**JDBC["options"], "url": url}}))
            assert config.source.options["url"] == wanted

    @pytest.mark.parametrize("text", ["${env:HOME}", "${system:user.home}", "${env.HOME}"])
    def test_variables_of_spark_and_hadoop(self, text: str) -> None:
        found = refused(good(spark={"conf": {"spark.app.name": text}}))
        assert "${NAME} or ${NAME:-default}" in found["spark.conf.spark.app.name"]

    @pytest.mark.parametrize(
        ("template", "value", "wanted"),
        [
            ("age >= ${VALUE}", "18", "age >= 18"),
            ("age >= ${VALUE}", "-1.5e3", "age >= -1.5e3"),
            ("age >= ${VALUE}", "0 OR true", "age >= '0 OR true'"),
            ("age >= ${VALUE} OR false", "age", "age >= 'age' OR false"),
            ("${VALUE}", "true", "'true'"),
            ("day = ${VALUE}", "2026-01-31", "day = '2026-01-31'"),
            ("day = DATE'${VALUE}'", "2026-01-31", "day = DATE'2026-01-31'"),
            ("a = 'it''s ${VALUE}'", "x", "a = 'it''s x'"),
            ("a = 'it''s' AND b = ${VALUE}", "x", "a = 'it''s' AND b = 'x'"),
            ("`it's` = ${VALUE}", "x or y", "`it's` = 'x or y'"),
            ("`c ${VALUE}` > 1", "b", "`c b` > 1"),
            ("a = ${VALUE:-b}", None, "a = 'b'"),
            ("a = ${NONE:-true}", "x", "a = 'true'"),
        ],
    )
    def test_in_sql_a_value_is_one_literal(
        self, monkeypatch: pytest.MonkeyPatch, template: str, value: str | None, wanted: str
    ) -> None:
        monkeypatch.delenv("VALUE", raising=False)
        if value is not None:
            monkeypatch.setenv("VALUE", value)
        assert parse(filled("source.where", template)).source.where == wanted

    @pytest.mark.parametrize(
        "template",
        [
            "a = 1 /* it's */ AND b = ${VALUE}",
            "a = 1 -- it's\n AND b = ${VALUE}",
            r"a = 'it\'s' AND b = ${VALUE}",
            "a = $$it's$$ AND b = ${VALUE}",
            "a = 1 # it's\n AND b = ${VALUE}",
            "a = ${VALUE:-0) OR (true}",
        ],
    )
    def test_sql_whose_quotes_are_uncertain(
        self, monkeypatch: pytest.MonkeyPatch, template: str
    ) -> None:
        monkeypatch.setenv("VALUE", "0 OR true")
        if ":-" in template:
            monkeypatch.delenv("VALUE")
        assert [*refused(filled("source.where", template))] == ["source.where"]

    def test_names_of_tables(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("VALUE", "people_2026")
        source = {"format": "table", "table": "db.${VALUE}"}
        assert parse(good(source=source)).source.table == "db.people_2026"
        options = {**JDBC["options"], "dbtable": "(SELECT * FROM p WHERE x = ${VALUE}) t"}
        found = parse(good(source={**JDBC, "options": options})).source.options["dbtable"]
        assert found == "(SELECT * FROM p WHERE x = 'people_2026') t"
        monkeypatch.setenv("VALUE", "a b")
        assert [*refused(good(source=source))] == ["source.table"]

    @pytest.mark.parametrize("where", ["source.where", "source.path", "privacy.missing_tokens"])
    def test_a_default_holds_no_other_variable(self, where: str) -> None:
        template: Any = "${X:-${env:DB_PASSWORD}}"
        found = refused(filled(where, [template] if where.endswith("tokens") else template))
        assert any("another variable in its default" in text for text in found.values())

    def test_control_characters_beyond_ascii(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("VALUE", "a\x9bb")
        assert "control" in refused(filled("release.path", "${VALUE}"))["release.path"]


class TestSweeps:
    def sweep(self, config: Any = None, **changes: Any) -> dict[str, Any]:
        case = {"config": config or good(), **changes.pop("case", {})}
        return {"cases": {"people": case}, "out": "out", **changes}

    def problems(self, raw: dict[str, Any], folder: Path = Path()) -> dict[str, str]:
        with pytest.raises(ConfigError) as caught:
            parse_sweep(raw, folder=folder)
        return {problem.where: problem.text for problem in caught.value.problems}

    @pytest.mark.parametrize(
        ("key", "template", "value"),
        [
            ("source.where", "region = '${VALUE}'", "x' or '1' = '1"),
            ('"source"."where"', "region = '${VALUE}'", "x' or '1' = '1"),
            ("source.path", "/data/${VALUE}/x.csv", "../.."),
            ("attributes.city.hierarchy", "trees/${VALUE}", "../x"),
            ("source.options.query", "SELECT ${VALUE}", "f(x)"),
            ("source.options.url", "jdbc:x://${VALUE}/p", "h?a=b"),
        ],
    )
    def test_fields_of_dotted_keys(
        self, monkeypatch: pytest.MonkeyPatch, key: str, template: str, value: str
    ) -> None:
        monkeypatch.setenv("VALUE", value)
        found = self.problems(self.sweep(case={"set": {key: template}}))
        said = found[f"cases.people.set.{key}"]
        assert "environment variable" in said
        assert value not in said
        grid = self.problems(self.sweep(grid={key: [template]}))
        assert grid[f"grid.{key}.0"] == said

    def test_fields_that_are_free(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("VALUE", "n/a; 'none'")
        [point] = parse_sweep(
            self.sweep(
                case={"set": {"privacy.missing_tokens.0": "${VALUE}"}},
                config=good(privacy={**good()["privacy"], "missing_tokens": ["?"]}),
            )
        ).points
        assert point.config.privacy.missing_tokens == ("n/a; 'none'",)

    @pytest.mark.parametrize("kind", ["key_env", "secrets"])
    def test_keys_of_a_cases_config(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str
    ) -> None:
        monkeypatch.setenv("MASTER", HUSH)
        config = good(release={"path": "out", "ledger": {"key_env": "MASTER"}})
        if kind == "secrets":
            config = good(source={**good()["source"], "secrets": {"password": "MASTER"}})
        (tmp_path / "people.yaml").write_text(yaml.safe_dump(config))
        raw = self.sweep("people.yaml", grid={"kernel.type": ["mdav", "${MASTER}"]})
        found = self.problems(raw, tmp_path)
        assert "MASTER holds a secret" in found["grid.kernel.type.1"]
        assert HUSH not in str(found)
        (tmp_path / "sweep.yaml").write_text(yaml.safe_dump(raw))
        with pytest.raises(ConfigError, match="MASTER holds a secret"):
            load_sweep(tmp_path / "sweep.yaml")

    def test_values_are_not_filled_in_again(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("PLAIN", HUSH)
        monkeypatch.setenv("TWICE", "${PLAIN}")
        config = good(source={"format": "csv", "path": "${TWICE}"})
        (tmp_path / "people.yaml").write_text(yaml.safe_dump(config))
        for given in (config, "people.yaml"):
            [point] = parse_sweep(self.sweep(given), folder=tmp_path).points
            assert point.config.source.path == str(tmp_path / "${PLAIN}")

    def test_unset_names_of_config_files(self, tmp_path: Path) -> None:
        found = self.problems(self.sweep("${NOT_SET_ANYWHERE}.yaml"), tmp_path)
        assert "is not set" in found["cases.people.config"]
