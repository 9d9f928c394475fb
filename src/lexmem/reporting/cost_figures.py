"""Figures of what models cost: loss against memory, the allocation of rows, decoding speed."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from lexmem.reporting.measures import NATS
from lexmem.reporting.stats import estimates_frame
from lexmem.reporting.style import COLOURS, DASHES, Looks, bar_style, legend_below, offsets


def loss_against_memory(frame: pd.DataFrame, looks: Looks) -> Figure:
    """Loss against all parameters and against the bytes of lookup tables.

    Args:
        frame: columns variant, total (parameters), table_bytes, mean, low, high (nats a token).
    """
    figure = Figure(figsize=(7.6, 3.3), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    labels = (("total", "all parameters, millions"), ("table_bytes", "lookup tables, MB in float32"))
    for axes, (column, label) in zip(panels, labels, strict=True):
        lowest = frame.groupby(column)["mean"].transform("min")
        for _, row in frame.assign(below=frame["mean"].eq(lowest) & frame[column].duplicated(keep=False)).iterrows():
            name, x = row["variant"], row[column] / 1e6
            spread = [[row["mean"] - row["low"]], [row["high"] - row["mean"]]]
            axes.errorbar(x, row["mean"], yerr=spread, **looks.dot(name, 8), elinewidth=1.5, capsize=2.5)
            place = (8, -12 if row["below"] else 4)  # of two at one size the labels part
            axes.annotate(looks.titles[name], (x, row["mean"]), place, textcoords="offset points", fontsize=9)
        axes.set_xlabel(label)
        axes.margins(x=0.3, y=0.15)
    panels[1].set_xlim(left=-0.03 * panels[1].get_xlim()[1])
    panels[0].set(title="Test loss against size", ylabel=NATS)
    panels[1].set_title("… and against table bytes")
    return figure


def allocation(frame: pd.DataFrame) -> Figure:
    """Rows of a token by its frequency rank, a line a method."""
    figure = Figure(figsize=(7.0, 3.5), layout="constrained")
    axes = figure.subplots()
    for number, (method, rows) in enumerate(frame.groupby("method", sort=False)):
        ranks, means = _binned(rows["rank"].to_numpy(), rows["rows"].to_numpy())
        dashes = DASHES[number % len(DASHES)]
        axes.plot(
            ranks, means, color=COLOURS[number % len(COLOURS)], linestyle=(0, dashes) if number else "-", label=method
        )
    axes.set(xscale="log", yscale="log", title="Rows of lookup tables a token gets")
    axes.set(xlabel="frequency rank of the token in the training text (1 = commonest)", ylabel="rows")
    top = frame["rows"].max()
    axes.set_yticks([2**power for power in range(int(np.log2(max(top, 1))) + 1)])
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, position: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_locator(LogLocator(10))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, position: f"{value:,.0f}"))
    axes.legend(title="allocation")
    return figure


def decoding(decode: pd.DataFrame, looks: Looks) -> Figure:
    """Tokens a second by where the tables are, a panel a batch size; bars are intervals over repeats."""
    batches = sorted(decode["batch_size"].unique())
    settings = list(dict.fromkeys(zip(decode["tier"], decode["prefetch"], strict=True)))
    figure = Figure(figsize=(7.6, 1.5 + 0.46 * len(settings)), layout="constrained")
    panels = figure.subplots(1, len(batches), sharey=True, squeeze=False)[0]
    means = estimates_frame(decode, ["variant", "tier", "prefetch", "batch_size"], "tokens_per_second")
    for axes, batch in zip(panels, batches, strict=True):
        _speeds(axes, means[means["batch_size"] == batch], settings, looks)
        axes.set(title=f"batch {batch}", xlabel="tokens a second")
        axes.grid(axis="y", visible=False)
        axes.set_xlim(0, 1.1 * means.loc[means["batch_size"] == batch, "high"].max())
    names = [tier if tier == "resident" else f"{tier}, {'' if ahead else 'no '}prefetch" for tier, ahead in settings]
    panels[0].set_yticks(range(len(settings)), names)
    panels[0].set_ylim(len(settings) - 0.5, -0.5)
    panels[0].set_ylabel("tables in")
    legend_below(figure, panels[0])
    return figure


def _speeds(axes: Axes, means: pd.DataFrame, settings: list[tuple[str, bool]], looks: Looks) -> None:
    for name, offset in zip(looks.variants, offsets(len(looks.variants), 0.15), strict=True):
        mine = means[means["variant"] == name]
        rows = [settings.index(setting) + offset for setting in zip(mine["tier"], mine["prefetch"], strict=True)]
        spread = mine["high"] - mine["mean"]
        axes.errorbar(mine["mean"], rows, xerr=spread, label=looks.titles[name], **bar_style(name, looks))


def _binned(ranks: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means over some forty log-spaced bins of rank: single tokens scatter."""
    bins = np.floor(np.log(ranks) / np.log(ranks.max() + 1) * 40).astype(int)
    frame = pd.DataFrame({"bin": bins, "rank": ranks, "rows": rows}).groupby("bin").mean()
    return frame["rank"].to_numpy(), frame["rows"].to_numpy()
