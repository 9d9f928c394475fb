"""Figures of what models learned. Each takes a tidy frame and the looks of the models, and returns a figure.

Points and lines are means over seeds; bars and bands are 95 % Student t intervals, missing where there is one seed.
"""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from lexmem.reporting.measures import NATS, PERCENT, Measure, bin_words
from lexmem.reporting.stats import differences_frame, estimates_frame
from lexmem.reporting.style import FLOOR, Looks, bar_style, legend_below, offsets
from lexmem.reporting.tables import MINUS

BAND_AXES = {"cloze": "occurrences of the words in the training text", "homophones": "which of the two words is right"}
LATE = 0.5  # where in training the second panel of the loss curves begins


def main_comparison(measures: Sequence[Measure], looks: Looks) -> Figure:
    """Paired difference to the baseline of each measure (one panel each): seeds, mean and interval."""
    names = looks.others
    figure = Figure(figsize=(7.6, 1.35 + 0.46 * len(names)), layout="constrained")
    panels = figure.subplots(1, len(measures), sharey=True, squeeze=False)[0]
    for axes, measure in zip(panels, measures, strict=True):
        axes.axvline(0, color=looks.colours[looks.baseline], linewidth=1.2)
        for row, name in enumerate(names):
            _difference_row(axes, row, measure, name, looks)
        better = "lower" if measure.lower_is_better else "higher"
        unit = "% points" if measure.unit == PERCENT else measure.unit
        axes.set(title=measure.title, xlabel=f"{unit}, minus {looks.titles[looks.baseline]} ({better} is better)")
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.grid(axis="y", visible=False)
        axes.margins(x=0.12)
    panels[0].set_yticks(range(len(names)), [looks.titles[name] for name in names])
    panels[0].set_ylim(len(names) - 0.5, -0.5)
    return figure


def loss_curves(curves: pd.DataFrame, looks: Looks) -> Figure:
    """Validation loss over the whole training (log scale, which gives its beginning room) and enlarged at its end."""
    figure = Figure(figsize=(7.6, 3.6), layout="constrained")
    whole, late = figure.subplots(1, 2, width_ratios=(1.25, 1))
    valid = curves[(curves["metric"] == "valid_loss") & (curves["tokens"] > 0)]
    means = estimates_frame(valid, ["variant", "tokens"], "value")
    ends = means[means["tokens"] >= LATE * means["tokens"].max()]
    for axes, frame in ((whole, means), (late, ends)):
        for name in looks.variants:
            _line(axes, frame[frame["variant"] == name], "tokens", name, looks)
        axes.set_xlabel("training tokens")
    whole.set(xscale="log", title="Validation loss", ylabel=NATS)
    late.set(title=f"Last {100 * (1 - LATE):.0f} %, enlarged", ylabel=NATS)
    _token_ticks(whole)
    late.xaxis.set_major_formatter(FuncFormatter(_tokens))
    legend_below(figure, whole)
    return figure


def difference_curves(curves: pd.DataFrame, looks: Looks) -> Figure:
    """Paired difference to the baseline in validation loss, through training."""
    figure = Figure(figsize=(7.0, 3.4), layout="constrained")
    axes = figure.subplots()
    valid = curves[(curves["metric"] == "valid_loss") & (curves["tokens"] > 0)]
    differences = differences_frame(valid, "tokens", "value", looks.baseline)
    axes.axhline(0, color=looks.colours[looks.baseline], linewidth=1.2, label=looks.titles[looks.baseline])
    for name in looks.others:
        _line(axes, differences[differences["variant"] == name], "tokens", name, looks)
    base = looks.titles[looks.baseline]
    axes.set(xscale="log", title=f"Validation loss minus {base}, through training", xlabel="training tokens")
    axes.set_ylabel(f"difference, {NATS}")
    _token_ticks(axes)
    legend_below(figure, axes)
    return figure


def decile_differences(deciles: pd.DataFrame, looks: Looks) -> Figure:
    """Test loss minus the baseline's by frequency decile of the target, over the deciles' share of test tokens."""
    figure = Figure(figsize=(7.0, 4.2), layout="constrained")
    axes, share = figure.subplots(2, 1, sharex=True, height_ratios=(4, 1))
    frame = deciles[deciles["bins"] == "equal_type"]
    differences = differences_frame(frame, "bin", "loss", looks.baseline)
    axes.axhline(0, color=looks.colours[looks.baseline], linewidth=1.2, label=looks.titles[looks.baseline])
    for name, offset in zip(looks.others, offsets(len(looks.others), 0.14), strict=True):
        mine = differences[differences["variant"] == name]
        _bars(axes, mine["bin"] + offset, mine, name, looks)
    base = looks.titles[looks.baseline]
    axes.set(title=f"Test loss minus {base}, by frequency of the token to predict", ylabel=f"difference, {NATS}")
    tokens = frame.groupby("bin")["tokens"].first()
    share.bar(tokens.index, 100 * tokens / tokens.sum(), color="#c9c9c9", width=0.6)
    share.set(ylabel="% of test\ntokens", xlabel="decile of the vocabulary that training shows, by occurrences")
    bins = list(tokens.index)
    words = {number: word.replace(" ", "\n") for number, word in bin_words(bins).items()}
    share.set_xticks(bins, [f"{number}\n{words[number]}" if number in words else str(number) for number in bins])
    share.grid(axis="x", visible=False)
    legend_below(figure, axes)
    return figure


def tasks_overview(tasks: Sequence[Measure], looks: Looks) -> Figure:
    """Accuracy on every task beside a guess and the floors."""
    figure = Figure(figsize=(7.0, 1.2 + 0.62 * len(tasks)), layout="constrained")
    axes = figure.subplots()
    places = offsets(len(looks.variants), 0.15)
    for row, task in enumerate(tasks):
        if task.chance is not None:
            label = {"label": "guess"} if row == 0 else {}
            axes.plot([100 * task.chance] * 2, [row - 0.38, row + 0.38], color="#222222", linestyle=":", **label)
        for name, height in zip(looks.floors, (0.38, 0.24, 0.12), strict=False):
            _floor_mark(axes, task, name, row, height, looks)
        for name, offset in zip(looks.variants, places, strict=True):
            found = task.estimate(name)
            if found is not None:
                spread = None if found.half_width is None else 100 * found.half_width
                label = {"label": looks.titles[name]} if row == 0 else {}
                axes.errorbar(100 * found.mean, row + offset, xerr=spread, **bar_style(name, looks), **label)
    axes.set_yticks(range(len(tasks)), [task.title for task in tasks])
    axes.set_ylim(len(tasks) - 0.5, -0.5)
    axes.set(title="Zero-shot accuracy", xlabel="% of items")
    axes.grid(axis="y", visible=False)
    legend_below(figure, axes)
    return figure


def tasks_by_frequency(bands: dict[str, list[Measure]], looks: Looks) -> Figure:
    """Accuracy by band of word frequency, a panel a task."""
    figure = Figure(figsize=(7.6, 3.6), layout="constrained")
    widths = [len(measures) + 1 for measures in bands.values()]
    panels = figure.subplots(1, len(bands), squeeze=False, width_ratios=widths)[0]
    for axes, (task, measures) in zip(panels, bands.items(), strict=True):
        for place, measure in enumerate(measures):
            _band(axes, place, measure, looks)
        if measures[0].chance is not None:
            axes.axhline(100 * measures[0].chance, color="#222222", linestyle=":", linewidth=1, label="guess")
        axes.set_xticks(range(len(measures)), [_folded(measure.title) for measure in measures])
        axes.set(title=task, xlabel=BAND_AXES.get(task, "band of word frequency"), xlim=(-0.6, len(measures) - 0.4))
        axes.grid(axis="x", visible=False)
    panels[0].set_ylabel("accuracy, %")
    legend_below(figure, panels[0])
    return figure


def _difference_row(axes: Axes, row: int, measure: Measure, name: str, looks: Looks) -> None:
    found = measure.difference(name, looks.baseline)
    if found is None:
        return
    scaled = found.scaled(measure.scale)
    paired = (measure.values[name] - measure.values[looks.baseline]).dropna() * measure.scale
    axes.plot(paired, [row + 0.22] * len(paired), linestyle="", marker=".", markersize=4, color=FLOOR)
    axes.errorbar(scaled.mean, row, xerr=scaled.half_width, **bar_style(name, looks))
    text = f"{scaled.mean:+.{measure.digits}f}".replace("-", MINUS)
    axes.annotate(text, (scaled.mean, row), (0, 7), textcoords="offset points", ha="center", fontsize=8.5)


def _band(axes: Axes, place: int, measure: Measure, looks: Looks) -> None:
    """Dots of all variants side by side, and a level line a floor; labelled once, at the first place."""
    for name in looks.floors:
        if (value := measure.value(name)) is not None:
            width = 3.0 if name == looks.floors[0] else 1.6
            label = {"label": looks.titles[name]} if place == 0 else {}
            axes.hlines(100 * value, place - 0.42, place + 0.42, color=FLOOR, linewidth=width, zorder=1.5, **label)
    for name, offset in zip(looks.variants, offsets(len(looks.variants), 0.16), strict=True):
        if (found := measure.estimate(name)) is not None:
            spread = None if found.half_width is None else 100 * found.half_width
            label = {"label": looks.titles[name]} if place == 0 else {}
            axes.errorbar(place + offset, 100 * found.mean, yerr=spread, **bar_style(name, looks), **label)


def _line(axes: Axes, means: pd.DataFrame, x: str, name: str, looks: Looks) -> None:
    if means.empty:
        return
    means = means.sort_values(x)
    axes.fill_between(means[x], means["low"], means["high"], color=looks.colours[name], alpha=0.13, linewidth=0)
    axes.plot(means[x], means["mean"], **(looks.line(name) | looks.dot(name, 4.5) | {"markeredgewidth": 0.5}))


def _bars(axes: Axes, x: pd.Series, frame: pd.DataFrame, name: str, looks: Looks) -> None:
    """A thin line through means with their intervals."""
    axes.plot(x, frame["mean"], **(looks.line(name) | {"linewidth": 1, "label": None}))
    axes.errorbar(
        x, frame["mean"], yerr=frame["high"] - frame["mean"], **bar_style(name, looks), label=looks.titles[name]
    )


def _floor_mark(axes: Axes, task: Measure, name: str, row: int, height: float, looks: Looks) -> None:
    value = task.value(name)
    if value is not None:
        label = {"label": looks.titles[name]} if row == 0 else {}
        width = 3.0 if name == looks.floors[0] else 1.6
        axes.plot([100 * value] * 2, [row - height, row + height], color=FLOOR, linewidth=width, zorder=1.5, **label)


def _folded(label: str) -> str:
    return label.replace(" to ", "\nto ").replace(" word ", " word\n")


def _token_ticks(axes: Axes) -> None:
    """Label a log axis of tokens at 1, 2 and 5 times powers of ten."""
    axes.xaxis.set_major_locator(LogLocator(10, subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(FuncFormatter(_tokens))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _tokens(value: float, _position: int) -> str:
    for size, letter in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"
