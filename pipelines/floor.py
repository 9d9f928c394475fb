"""Stage floor: 4-gram models on the same held-out text and items as every run."""

from typing import Annotated

import typer

from lexmem.spec.errors import exit_on_user_error


def main(preset: Annotated[str, typer.Option(help="Name of a file in presets/.")]) -> None:
    """Fit and score a 4-gram model on the training prefix, and a second one on the whole training split."""
    from lexmem.spec.layout import Layout
    from lexmem.spec.params import load_preset

    params, layout = load_preset(preset), Layout(preset)
    from lexmem.evaluation.quiet import silence

    silence()
    import time

    from lexmem.data.tokenizer import load_tokenizer
    from lexmem.data.tokens import TokenFiles
    from lexmem.evaluation.ngram import NgramModel, NgramScorer
    from lexmem.evaluation.records import write_evaluation
    from lexmem.evaluation.suite import evaluate_all
    from lexmem.evaluation.tasks import load_tasks
    from lexmem.spec.timing import machine

    tokens = TokenFiles.open(layout.tokens)
    tokenizer = load_tokenizer(layout.tokens / "tokenizer.json")
    floors = {
        "ngram": ("4-gram", tokens.prefix(params.budget.tokens)),
        "ngram-full": ("4-gram, whole corpus", tokens.split("train")),
    }
    for name, (title, ids) in floors.items():
        started = time.monotonic()
        scorer = NgramScorer(NgramModel(ids, tokens.vocab_size), params.budget.seq_len)
        fit_seconds = time.monotonic() - started
        print(f"{title}: {len(ids):,} tokens in {fit_seconds:.1f} s")
        tasks = load_tasks(params.tasks.names, layout.tasks, params.evaluate.limit)
        evaluation = evaluate_all(scorer, tokenizer, tokens, tasks, params)
        setting = {"fit_seconds": fit_seconds, "fit_tokens": len(ids), "threads": 1, "machine": machine()}
        write_evaluation(layout.metrics("floor"), name, title, 0, evaluation, setting)
        print(evaluation.tasks.to_string(index=False, float_format="%.4f"))


if __name__ == "__main__":
    exit_on_user_error(lambda: typer.run(main))
