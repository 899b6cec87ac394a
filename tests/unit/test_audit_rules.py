"""What holds of the audit without Spark: light imports, a model for each model. What it must not
import is in test_layout.py."""

import subprocess
import sys

import pytest

from anonlib import registry
from anonlib.auditing import AuditReport, AuditSpec, Verdict, by_parts
from anonlib.errors import Problem
from anonlib.privacy.l_diversity import LDiversity


def test_listing_the_models_needs_no_spark() -> None:
    code = (
        "import sys; from anonlib import registry; registry.plugins('audit');"
        "assert 'pyspark' not in sys.modules, 'pyspark';"
        "assert not [m for m in sys.modules if m.startswith('anonlib.kernels')], 'kernels'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_privacy_model_has_its_audit() -> None:
    models, audits = registry.plugins("privacy model"), registry.plugins("audit")
    assert models.keys() == audits.keys()
    for name, model in models.items():
        assert model.model_fields.keys() == audits[name].model_fields.keys()


def test_an_audit_model_is_built_from_its_model() -> None:
    built = registry.build("audit", registry.spec(LDiversity(l=3, attribute="illness")))
    assert built.label == "l_diversity l=3 attribute=illness"
    assert built.protected == ("illness",)
    assert built.required == 3


def test_counting_by_token_needs_a_token() -> None:
    with pytest.raises(ValueError, match="no token"):
        AuditSpec((), (), (), persons="token")


def test_a_report_passes_only_if_something_was_verified() -> None:
    good = Verdict("k_anonymity k=2", True, 2, 2, 0, ())
    bad = Verdict("k_anonymity k=3", False, 2, 3, 1, (2,))

    def passed(*verdicts: Verdict, problems: tuple[Problem, ...] = ()) -> bool:
        return AuditReport(2, 1, verdicts, problems, ((2, 1),), "none").passed

    assert passed(good)
    assert not passed()
    assert not passed(good, bad)
    assert not passed(good, problems=(Problem("", "no"),))


def test_a_table_is_judged_by_its_parts_only_where_it_could_not_be_verified() -> None:
    counted = Verdict("k_anonymity k=3", True, 5, 3, 0, ())
    failing = Verdict("k_anonymity k=3", False, 2, 3, 1, (2,))
    unknown = Verdict("k_anonymity k=3", False, None, 3, 0, (), note="persons can't be counted")
    too_small = Verdict("k_anonymity k=3", False, None, 3, 1, (2,), note="persons can't be counted")

    def holds(table: Verdict, added: Verdict) -> bool:
        whole, part = (AuditReport(9, 2, (v,), (), ((4, 2),), "none") for v in (table, added))
        found = by_parts(whole, part)
        assert (found.n_rows, found.verdicts[0].note != "") == (9, table.note != "")
        return found.passed

    assert holds(unknown, counted)
    assert not holds(unknown, failing)
    assert not holds(too_small, counted)
    assert not holds(failing, counted)
    assert holds(counted, counted)

    # Parts may have been looked at in more ways than the whole.
    whole = AuditReport(9, 2, (unknown,), (), (), "none")
    part = AuditReport(4, 1, (counted,), (), (), "none")
    assert by_parts(whole, part.and_("each controller", part)).passed
