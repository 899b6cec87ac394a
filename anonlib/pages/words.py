"""Numbers and names as text on a page."""

import math
import re
from collections.abc import Mapping
from typing import Any

from markupsafe import Markup, escape

from anonlib.text import count_noun, printable, spell_figure

#: Most characters of a label in a drawing.
MAX_LABEL = 22


def number(value: Any) -> str:
    """A value in few digits, as `spell_figure` has figures."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return printable(value)
    return spell_figure(value)


def show_measurement(value: Any, *, exact: bool) -> str:
    """The measured figure of a verdict. exact: Whether it is the figure, and not a bound on it."""
    if value is None:
        return "not measured"
    return number(value) if exact else f"{number(value)} or better"


def name_value(value: Any) -> str:
    """A value that was chosen, such as a parameter: as `number` has it, but where that rounds, with
    as many digits as it needs, without noise of binary fractions."""
    text = number(value)
    if not isinstance(value, float) or not math.isfinite(value):
        return text
    whole = f"{value:.12g}"
    return text if float(text.replace(",", "")) == float(whole) else whole


def spell_percent(share: float) -> str:
    """A share as a percentage: `12.5 %`, `0.03 %`."""
    return f"{100 * share:.3g} %"


def count_classes(audit: Mapping[str, Any]) -> str:
    """The classes of an audited table, as the record has its audit."""
    text = count_noun(audit["n_classes"], "class", "classes")
    return f"at most {text}" if audit.get("by_batch") else text


def speak(name: str) -> str:
    """A name from the code, such as `mean_error`, as words."""
    return printable(name).replace("_", " ")


def spell_role(role: str) -> str:
    """The role of a column in words."""
    return {"quasi_identifier": "quasi-identifier", "drop": "dropped"}.get(role, speak(role))


def as_sentence(text: str) -> str:
    """A note as a sentence, with an upper-case letter in front and a full stop at its end."""
    text = printable(text)
    return raise_first_letter(text if text.endswith((".", "!", "?")) else f"{text}.")


def spell_label(label: str) -> str:
    """A plug-in and its parameters (`label_plugin`) in words: `mdav (variant figure4)`."""
    name, *parameters = re.split(r" (?=\w+=)", printable(label))
    told = [speak(each.partition("=")[0]) + f" {each.partition('=')[2]}" for each in parameters]
    return f"{name} ({', '.join(told)})" if told else name


def spell_model(spec: Mapping[str, Any]) -> str:
    """A privacy model in words: `l-diversity of diagnosis, l = 2`. spec: Its `type`, parameters,
    and what it was judged `within`."""
    # `k_anonymity`, and as other models are named: `alpha_k_anonymity`
    plain = re.sub(r"(?<![^\W_])([klt])_", r"\1-", printable(spec["type"])).replace("_", " ")
    within = f"{printable(spec['within'])}: " if "within" in spec else ""
    of = f" of {printable(spec['attribute'])}" if spec.get("attribute") else ""
    own = [name for name in spec if name not in ("type", "attribute", "within")]
    told = [f"{speak(name)} = {printable(str(spec[name]))}" for name in own]
    return ", ".join([f"{within}{plain}{of}", *told])


def show_moments(moments: Mapping[str, Any]) -> tuple[float | str | None, float | str | None]:
    """The mean and the deviation of a column in its own units, from a record. None for ranks, which
    have no units."""
    form, mean, sd = moments.get("form"), moments.get("mean"), moments.get("sd")
    if form == "rank" or mean is None or sd is None:
        return None, None
    if form in ("date", "time"):
        return printable(str(mean)), f"{number(float(f'{sd:.4g}'))} days"
    return mean, sd


def raise_first_letter(text: str) -> str:
    """The text with its first letter in upper case, as a sentence begins."""
    return text[:1].upper() + text[1:]


def shorten_label(value: Any) -> str:
    """A value as a label in a drawing, cut after MAX_LABEL characters."""
    text = number(value)
    return text if len(text) <= MAX_LABEL else text[: MAX_LABEL - 1] + "…"


def take_first_sentence(text: str) -> str:
    """The first sentence of a text, without full stop and without parentheses of code."""
    return re.sub(r" ?\(`[^`]*`\)", "", text.partition(". ")[0].rstrip("."))


def mark_code(text: str) -> Markup:
    """A text as HTML, with parts in backticks as code."""
    return Markup(re.sub(r"`([^`]*)`", r"<code>\1</code>", str(escape(text))))


def make_breakable(text: str) -> Markup:
    """A name as HTML, with a possible line break after each of the signs `_./=:,-`."""
    return Markup("<wbr>").join(re.split(r"(?<=[_./=:,-])(?=[^\W\d])", text))


def say_between(low: Any, high: Any) -> str:
    """A range of numbers, both ends included."""
    return number(low) if low == high else f"{number(low)}–{number(high)}"
