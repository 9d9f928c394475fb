"""Sentences of the report, every number computed from the frames."""

import math

import pandas as pd

from lexmem.reporting.frames import Results
from lexmem.reporting.measures import (
    Measure,
    average,
    bin_words,
    bits_per_byte,
    headline_metric,
    task_measures,
    test_loss,
)
from lexmem.reporting.stats import Estimate, estimate, paired_difference
from lexmem.reporting.tables import MINUS

NORMAL_95 = 1.96


def headlines(results: Results) -> list[str]:
    """One sentence a variant on test loss, then one on the tasks' average."""
    loss = test_loss(results)
    sentences = [_compared(results, loss, name, "nats a token of test loss") for name in results.others]
    tasks = task_measures(results)
    if tasks:
        sentences += [
            _compared(results, average(tasks), name, "% points of average task accuracy") for name in results.others
        ]
    return [sentence for sentence in sentences if sentence]


def by_frequency(results: Results) -> list[str]:
    """One sentence a variant: where in the vocabulary its difference to the baseline is."""
    frame = results.by_decile.dropna(subset=["loss"])
    sentences = []
    for name in results.others:
        ends = []
        for number, words in bin_words(frame["bin"].tolist()).items():
            place = frame[frame["bin"] == number]
            found = paired_difference(_losses(place, name), _losses(place, results.baseline))
            if number > 0 and found is not None:
                ends.append(f"{_interval(found, 3)} on the {words}")
        if ends:
            sentences.append(f"{_minus(results, name)}, nats a token of test loss: {', '.join(ends)} decile.")
    return sentences


def resolution(results: Results) -> list[str]:
    """What a study of this size can tell apart: data, seeds, items, and which tasks are above the floor."""
    entry = results.plan[results.baseline]
    tokens, active = entry["budget"]["tokens"], entry["cost"]["active"]
    sentences = [
        f"Every model saw {tokens:,} training tokens: {tokens / active:.2g} for each of the {active / 1e6:.2f} M "
        f"parameters that {results.title(results.baseline)} uses on a token."
    ]
    if results.others:
        sentences += _seed_resolution(results)
    sentences += [*_text_floor(results), *_task_resolution(results)]
    cut = int(results.heldout.loc[results.heldout["variant"].isin(results.variants), "truncated"].max())
    if cut:
        sentences.append(
            f"In every evaluation up to {cut:,} requests had a context too long for the model, cut on the left."
        )
    return sentences


def speeds(results: Results) -> list[str]:
    """One sentence a variant on training speed relative to the baseline."""
    sentences = []
    for name in results.others:
        mine = results.training_speed[results.training_speed["variant"] == name]
        found = estimate(mine["relative_to_baseline"])
        if found is not None:
            base = results.title(results.baseline)
            sentences.append(
                f"{results.title(name)} trains at {_interval(found, 2, signed=False)} times the speed of {base} "
                f"({found.n} repeat{_s(found.n)})."
            )
    return sentences


def above_floor(results: Results) -> tuple[list[str], list[str]]:
    """Tasks on which the best variant is above the first floor by 1.96 standard errors over items, and the rest."""
    above, rest = [], []
    for task in task_measures(results):
        means = [value for name in results.variants if (value := task.value(name)) is not None]
        floor = task.value(results.floors[0])
        if not means or floor is None:
            continue
        stderr = _stderr(results, task.key)
        clear = stderr is not None and max(means) - floor > NORMAL_95 * math.sqrt(2) * stderr
        (above if clear else rest).append(task.title)
    return above, rest


def _seed_resolution(results: Results) -> list[str]:
    loss = test_loss(results)
    differences = [loss.difference(name, results.baseline) for name in results.others]
    widths = [found.half_width for found in differences if found is not None and found.half_width is not None]
    if not widths:
        return ["With one seed no difference has an interval: nothing here is more than an indication."]
    n = max(found.n for found in differences if found is not None)
    return [
        f"{n} seeds resolve differences in test loss of {min(widths):.3f} to {max(widths):.3f} nats a token "
        "(half widths of the paired intervals); smaller ones are not told from 0."
    ]


def _text_floor(results: Results) -> list[str]:
    """Which models predict the test text better than the first floor, a network-free model of the same tokens."""
    measure, floor = bits_per_byte(results), results.floors[0]
    known = {name: value for name in results.variants if (value := measure.value(name)) is not None}
    limit = measure.value(floor)
    if limit is None or not known:
        return []
    better = [results.title(name) for name, value in known.items() if value < limit]
    worse = [results.title(name) for name, value in known.items() if value >= limit]
    verdicts = [f"{', '.join(names)} {words}" for names, words in ((better, "below"), (worse, "not below")) if names]
    return [f"The {floor} model predicts the test text at {limit:.3f} bits a byte: {'; '.join(verdicts)}."]


def _task_resolution(results: Results) -> list[str]:
    tasks = task_measures(results)
    if not tasks:
        return []
    sentences = []
    errors = {task.title: error for task in tasks if (error := _stderr(results, task.key)) is not None}
    if errors:
        widest = max(errors, key=errors.__getitem__)
        sentences.append(
            f"Sampling of items alone moves an accuracy by up to ±{100 * NORMAL_95 * errors[widest]:.1f} % points "
            f"({widest}, 95 %)."
        )
    found = [task.difference(name, results.baseline) for task in tasks for name in results.others]
    judged = [difference for difference in found if difference is not None and difference.half_width is not None]
    if judged:
        clear = sum(difference.excludes_zero for difference in judged)
        sentences.append(
            f"{clear} of the {len(judged)} differences on single tasks exclude 0; chance alone would give about "
            f"{0.05 * len(judged):.1g}."
        )
    above, rest = above_floor(results)
    floor = results.floors[0]
    sentences.append(f"Clearly above the {floor} model: {', '.join(above) or 'no task'}.")
    if rest:
        sentences.append(
            f"Not clearly above it, so that differences there say little about language: {', '.join(rest)}."
        )
    return sentences


def _compared(results: Results, measure: Measure, name: str, unit: str) -> str | None:
    found = measure.difference(name, results.baseline)
    if found is None:
        return None
    scaled = found.scaled(measure.scale)
    digits = 3 if measure.lower_is_better else 1
    return (
        f"{_minus(results, name)}: {_interval(scaled, digits)} {unit}, {found.n} seed{_s(found.n)}: "
        f"{_verdict(found, measure.lower_is_better)}."
    )


def _verdict(found: Estimate, lower_is_better: bool) -> str:
    if found.half_width is None:
        return "no interval"
    if not found.excludes_zero:
        return "not resolved"
    return "better" if (found.mean < 0) == lower_is_better else "worse"


def _interval(found: Estimate, digits: int, signed: bool = True) -> str:
    sign = "+" if signed else ""
    texts = [f"{value:{sign}.{digits}f}" for value in (found.mean, *(found.interval or ()))]
    texts = [text.replace("-", MINUS) for text in texts]
    return texts[0] if len(texts) == 1 else f"{texts[0]} [{texts[1]}, {texts[2]}]"


def _stderr(results: Results, task: str) -> float | None:
    metric = headline_metric(results, task, task)
    rows = results.tasks[(results.tasks["task"] == task) & (results.tasks["metric"] == metric)]
    mean = rows["stderr"].mean()
    return None if pd.isna(mean) else float(mean)


def _losses(frame: pd.DataFrame, name: str) -> pd.Series:
    return frame[frame["variant"] == name].set_index("seed")["loss"]


def _minus(results: Results, name: str) -> str:
    return f"{results.title(name)} {MINUS} {results.title(results.baseline)}"


def _s(count: int) -> str:
    return "" if count == 1 else "s"
