"""Stage evaluate: one trained model on held-out text and on every task."""

from typing import Annotated

import typer

from lexmem.spec.errors import exit_on_user_error


def main(
    preset: Annotated[str, typer.Option(help="Name of a file in presets/.")],
    variant: Annotated[str, typer.Option(help="Label of a run in params.yaml.")],
    seed: Annotated[int, typer.Option(help="Seed of the run.")],
) -> None:
    """Score a run, write its files, and log them into the run of its training."""
    from lexmem.spec.layout import Layout
    from lexmem.spec.params import load_preset

    params, layout = load_preset(preset), Layout(preset)
    from lexmem.evaluation.quiet import silence

    silence()
    import sys

    import torch

    from lexmem.data.tokens import TokenFiles
    from lexmem.evaluation.records import write_evaluation, write_nothing
    from lexmem.evaluation.scorer import DecoderScorer
    from lexmem.evaluation.suite import evaluate_all
    from lexmem.evaluation.tasks import load_tasks
    from lexmem.model.run import load_run
    from lexmem.spec.timing import machine
    from lexmem.tracking import record_evaluate

    folder, name, path = layout.metrics("evaluate"), f"{variant}-{seed}", layout.run(variant, seed)
    if (path / "plan.json").exists() and not (path / "model.safetensors").exists():
        write_nothing(folder, name, variant, seed)
        print(f"warning: {name}: its training stopped before the end, so there is nothing to score", file=sys.stderr)
        return
    torch.set_num_threads(params.train.threads)
    run, tokens = load_run(path), TokenFiles.open(layout.tokens)
    tasks = load_tasks(params.tasks.names, layout.tasks, params.evaluate.limit)
    scorer = DecoderScorer(run.model, params.budget.seq_len, params.evaluate.batch_tokens)
    evaluation = evaluate_all(scorer, run.tokenizer, tokens, tasks, params)
    setting = {"threads": params.train.threads, "machine": machine()}
    write_evaluation(folder, name, variant, seed, evaluation, setting)
    record_evaluate(preset, variant, seed)
    print(f"{name}: {evaluation.heldout['bits_per_byte']:.4f} bits per byte; truncated {evaluation.truncated}")
    print(evaluation.tasks.to_string(index=False, float_format="%.4f"))


if __name__ == "__main__":
    exit_on_user_error(lambda: typer.run(main))
