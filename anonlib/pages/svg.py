"""Drawings: matplotlib figures as SVG inside a page, with the page's colours and font."""

import io
import re
import warnings
from collections.abc import Callable
from hashlib import sha256
from typing import Any
from xml.etree import ElementTree

import matplotlib as mpl
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

#: Width of a drawing in units. A phone shows it at about this size, so texts stay readable.
WIDTH = 360
FONT_SIZE = 12

#: Placeholders. The page replaces them by its own colours, in light and in dark mode.
INK, MUTED, RULE, FILL, PAPER = "#010101", "#010102", "#010103", "#010104", "#010105"
LINES = ("#020201", "#020202", "#020203", "#020204", "#020205", "#020206", "#020207", "#020208")
_VARIABLES = {
    INK: "ink",
    MUTED: "muted",
    RULE: "rule",
    FILL: "fill",
    PAPER: "paper",
    **{color: f"line-{i}" for i, color in enumerate(LINES, 1)},
}
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "anonlib",
    "text.parse_math": False,  # a column may be named $x$
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same layout everywhere
    "font.size": FONT_SIZE,
    "text.color": INK,
    "axes.edgecolor": RULE,
    "axes.labelcolor": MUTED,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "grid.color": RULE,
    "legend.frameon": False,
}
#: matplotlib's defaults, so that settings of a notebook have no effect.
_DEFAULTS: dict[Any, Any] = {
    key: value for key, value in mpl.rcParamsDefault.items() if "backend" not in key
}


def make_drawing(label: str, height: float, draw: Callable[[Axes], None]) -> Markup:
    """A drawing as SVG.

    The same input gives the same text. Drawings with different labels or contents have different
    ids, so they can be on one page.

    Args:
        label: What it shows, for screen readers.
        height: Its height in units; its width is WIDTH.
        draw: Draws on the axes that it gets.
    """
    with mpl.rc_context(_DEFAULTS | _STYLE), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # letters that the font lacks: the browser has others
        figure = Figure(figsize=(WIDTH / 72, height / 72), layout="constrained")
        figure.patch.set_visible(False)
        axes = figure.add_subplot()
        axes.patch.set_visible(False)
        draw(axes)
        out = io.StringIO()
        FigureCanvasSVG(figure).print_svg(out, metadata={"Date": None})  # type: ignore[no-untyped-call]
    return _for_page(out.getvalue(), label)


def _for_page(text: str, label: str) -> Markup:
    """Removes what a page doesn't need of an SVG: fixed size, namespaces, metadata, unused ids, and
    the style sheet, which would apply to the whole page."""
    root = ElementTree.fromstring(text)
    used = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', text))
    salt = sha256(f"{label}\n{text}".encode()).hexdigest()[:8]
    for element in root.iter():
        for child in list(element):
            if _local(child.tag) in ("metadata", "style"):
                element.remove(child)
        _clean(element, {id: f"{salt}-{id}" for id in used})
    box = root.attrib["viewBox"]
    root.attrib.clear()
    root.attrib.update({"viewBox": box, "role": "img", "aria-label": label})
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def _clean(element: ElementTree.Element, ids: dict[str, str]) -> None:
    """Cleans one element: no namespaces, the page's colours, short numbers, unique ids."""
    element.tag = _local(element.tag)
    if element.tag != "text":
        element.text = None
    element.tail = None
    given = {_local(key): value for key, value in element.attrib.items()}
    element.attrib.clear()
    for key, value in given.items():
        if key == "id":
            if value in ids:
                element.set("id", ids[value])
        elif key == "href":
            element.set("href", f"#{ids[value[1:]]}")
        elif key == "clip-path":
            element.set(key, f"url(#{ids[value[5:-1]]})")
        elif key == "style":
            element.set(key, _colours(value))
        elif not value.startswith("rotate(-0 "):
            element.set(key, _short(value))


def _colours(style: str) -> str:
    style = re.sub(r"font-family: [^;]+;? ?", "", style)
    return re.sub(r"#\d{6}", lambda match: f"var(--{_VARIABLES[match[0]]})", style)


def _short(value: str) -> str:
    """A value on one line, its numbers cut to two decimals."""
    return re.sub(r"(\d\.\d\d)\d+", r"\1", value.replace("\n", " "))


def _local(name: str) -> str:
    return name.rpartition("}")[2]
