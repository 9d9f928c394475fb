"""How figures look: one colour, marker and line for a variant everywhere, and the same bytes for the same numbers."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lexmem.reporting.frames import Results
from lexmem.spec.files import replacing

BASELINE = "#3b3b3b"
FLOOR = "#8c8c8c"
# The colour-blind safe palette without its pale tints, which white paper swallows, and its grey, the floors' own.
COLOURS = [sns.color_palette("colorblind").as_hex()[number] for number in (0, 1, 2, 3, 4, 5, 9)]
MARKERS = ("s", "^", "D", "v", "P", "X", "<", ">", "*")
LOOKS_SMALL = 1.25  # factor on the size of triangles and stars
DASHES = ((5, 1.5), (1.5, 1.2), (6, 1.5, 1.5, 1.5), (3, 1), (8, 2), (4, 1, 1, 1, 1, 1))
RC = {
    "svg.hashsalt": "lexmem",
    "figure.dpi": 100,
    "savefig.dpi": 180,
    "figure.facecolor": "white",
    "figure.constrained_layout.w_pad": 0.06,
    "figure.constrained_layout.h_pad": 0.05,
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 9.5,
    "axes.edgecolor": "#888888",
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.7,
    "xtick.color": "#555555",
    "ytick.color": "#555555",
    "xtick.labelcolor": "#222222",
    "ytick.labelcolor": "#222222",
    "legend.frameon": False,
    "legend.fontsize": 9,
    "legend.handlelength": 2.6,
    "lines.linewidth": 1.7,
    "lines.markersize": 6,
    "axes.unicode_minus": True,
}


@dataclass(frozen=True)
class Looks:
    """Who appears in figures, and how. Colour and marker follow a variant's place in the study.

    Attributes:
        variants, floors: names in order; ``baseline`` is one of the variants.
        titles: by name, what legends say.
        colours, markers, dashes: by name. Seven colours and nine markers make 63 pairs.
    """

    variants: list[str]
    floors: list[str]
    baseline: str
    titles: dict[str, str]
    colours: dict[str, str]
    markers: dict[str, str]
    dashes: dict[str, tuple[float, ...] | str]

    @classmethod
    def of(cls, results: Results) -> "Looks":
        colours = {results.baseline: BASELINE, **dict.fromkeys(results.floors, FLOOR)}
        markers = {results.baseline: "o", **dict.fromkeys(results.floors, "|")}
        dashes: dict[str, tuple[float, ...] | str] = {results.baseline: ""}
        for number, name in enumerate(results.others):
            colours[name] = COLOURS[number % len(COLOURS)]
            markers[name] = MARKERS[number % len(MARKERS)]
            dashes[name] = DASHES[number % len(DASHES)]
        for number, name in enumerate(results.floors):
            dashes[name] = (1, 1.5 + number)
        titles = {name: results.title(name) for name in results.models}
        return cls(results.variants, results.floors, results.baseline, titles, colours, markers, dashes)

    @property
    def others(self) -> list[str]:
        """The variants that are compared with the baseline."""
        return [name for name in self.variants if name != self.baseline]

    def line(self, name: str) -> dict:
        """Keyword arguments of a line with markers."""
        dashes = self.dashes[name]
        style = {"linestyle": (0, dashes)} if dashes else {"linestyle": "-"}
        return {"color": self.colours[name], "label": self.titles[name], **style}

    def dot(self, name: str, size: float = 6.0) -> dict:
        """Keyword arguments of a marker with a thin white rim; markers of one ``size`` (points) look equally big."""
        marker = self.markers[name]
        size *= LOOKS_SMALL if marker in "^v<>*" else 1.0
        return {"color": self.colours[name], "marker": marker, "markeredgecolor": "white", "markersize": size}


def bar_style(name: str, looks: Looks) -> dict:
    """Keyword arguments of a marker with an interval."""
    return {**looks.dot(name), "linestyle": "", "elinewidth": 1.5, "capsize": 2.5, "capthick": 1.2}


def offsets(count: int, step: float) -> list[float]:
    """Places of ``count`` marks side by side, around 0."""
    return [step * (number - (count - 1) / 2) for number in range(count)]


def legend_below(figure: Figure, axes: Axes) -> None:
    """One legend for all panels, under them."""
    handles, labels = axes.get_legend_handles_labels()
    columns = len(labels) if len(labels) <= 5 else 4
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, columnspacing=1.6)


def save_figure(name: str, draw: Callable[[], Figure], folder: Path) -> list[Path]:
    """Draw under the house style and write ``<name>.svg`` and ``.png``; equal figures give equal bytes."""
    paths = []
    with sns.axes_style("white"), mpl.rc_context(RC):
        figure = draw()
        figure.draw_without_rendering()  # lay out once, not again for each format
        figure.set_layout_engine("none")
        for suffix, metadata in ((".svg", {"Date": None, "Creator": None}), (".png", {"Software": None})):
            path = folder / f"{name}{suffix}"
            with replacing(path) as temporary:
                figure.savefig(temporary, format=suffix[1:], metadata=metadata)
            paths.append(path)
    return paths
