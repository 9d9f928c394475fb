"""Evaluation items: fetch the public ones, make ours from held-out text, count those that stand in training text."""

from typing import Annotated

import typer

from lexmem.spec.errors import exit_on_user_error

HELDOUT_CHARACTERS = 20_000_000  # far more than some thousand sentences need


def main(preset: Annotated[str, typer.Option(help="Name of a file of presets/.")]) -> None:
    """Write the items of every named task and what is known about them."""
    import os
    from pathlib import Path

    from lexmem.spec.layout import Layout
    from lexmem.spec.params import load_preset

    params, layout = load_preset(preset), Layout(preset)
    os.environ.setdefault("HF_HOME", ".hf")  # before the hub's client is imported
    from lexmem.evaluation.build import HeldOut, build_entry
    from lexmem.evaluation.catalogue import check_names
    from lexmem.evaluation.contamination import contaminated
    from lexmem.evaluation.items import ORDER_SEED
    from lexmem.evaluation.store import evidence, write_tasks
    from lexmem.evaluation.texts import first_texts, lower_case_counts, prefix_texts, read_texts
    from lexmem.progress import tracked
    from lexmem.spec.files import write_json
    from lexmem.spec.timing import timed

    check_names(params.tasks.names)
    with timed(layout, "tasks"):
        prefix = (layout.corpus, layout.tokens, params.budget.tokens)
        heldout = HeldOut(
            texts=first_texts(layout.corpus / "test.jsonl", HELDOUT_CHARACTERS),
            counts=lower_case_counts(prefix_texts(*prefix)),
            cloze_items=params.tasks.cloze_items,
            homophone_items=params.tasks.homophone_items,
            seed=ORDER_SEED,
        )
        data_dir = Path(params.tasks.data_dir) if params.tasks.data_dir is not None else None
        entries = {name: build_entry(name, heldout, data_dir) for name in params.tasks.names}
        texts = evidence(entries)
        in_prefix = contaminated(texts, prefix_texts(*prefix))
        in_corpus = contaminated(texts, tracked("contamination", read_texts(layout.corpus / "train.jsonl")))
        listing = write_tasks(layout.tasks, entries, in_prefix, in_corpus)
    write_json(layout.metrics("tasks") / "tasks.json", listing)
    for name, entry in listing["tasks"].items():
        print(f"{name}: {entry['items']} items, {entry['contaminated']['corpus']} in the training text")
        for leaf, note in entry["notes"].items():
            print(f"  {leaf}: {note}")


if __name__ == "__main__":
    exit_on_user_error(lambda: typer.run(main))
