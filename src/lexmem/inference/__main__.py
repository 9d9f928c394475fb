"""``python -m lexmem.inference generate --run runs/pocket/dense-0 --prompt "..."``: text from a trained run."""

from pathlib import Path
from typing import Annotated

import typer

from lexmem.spec.errors import UserError, exit_on_user_error, nearest

app = typer.Typer(add_completion=False, help="Use trained runs.")


@app.callback()
def inference() -> None: ...


@app.command("generate")
def command(
    run: Annotated[Path, typer.Option(help="Folder of a trained run.")],
    prompt: Annotated[str, typer.Option(help="What to continue; empty: begin a document.")] = "",
    max_new_tokens: Annotated[int, typer.Option(min=1, help="Stop after so many tokens.")] = 200,
    temperature: Annotated[float, typer.Option(help="0 takes the most likely token each time.")] = 0.8,
    top_k: Annotated[int, typer.Option(help="Draw from so many most likely tokens (0: all).")] = 0,
    top_p: Annotated[float, typer.Option(help="Draw from the most likely tokens of this probability.")] = 0.95,
    seed: Annotated[int, typer.Option(help="Seed of the draws.")] = 0,
    tier: Annotated[str, typer.Option(help="Where lookup tables are kept: resident, host or disk.")] = "resident",
    prefetch: Annotated[bool, typer.Option(help="Read their rows ahead of their use.")] = True,
) -> None:
    """Print the continuation of a prompt as it is made."""
    if not run.is_dir():
        known = [str(path.parent) for path in Path("runs").glob("*/*/model.safetensors")]
        raise UserError(f"run = {run}: no such folder; {nearest(str(run), known)}")
    import tempfile

    from lexmem.inference.decode import generate
    from lexmem.inference.offload import offload
    from lexmem.inference.sampling import Sampling
    from lexmem.inference.text import stream_text
    from lexmem.model.run import load_run

    sampling = Sampling(temperature, top_k, top_p, seed)
    loaded = load_run(run)
    ids = loaded.tokenizer.encode(prompt).ids
    with tempfile.TemporaryDirectory() as folder, offload(loaded.model, tier, Path(folder), prefetch):
        print(prompt, end="", flush=True)
        for piece in stream_text(loaded.tokenizer, generate(loaded, ids, max_new_tokens, sampling)):
            print(piece, end="", flush=True)
        print()


if __name__ == "__main__":
    exit_on_user_error(app)
