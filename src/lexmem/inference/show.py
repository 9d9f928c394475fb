"""The benchmark as tables on a terminal."""

from rich.console import Console
from rich.table import Table

from lexmem.inference.bench import SETTING, Bench
from lexmem.inference.timing import medians


def print_bench(bench: Bench) -> None:
    """Print medians over repeats of decoding, and of training beside the baseline."""
    about = bench.about
    title = f"decoding with a KV cache: {about['machine']}, {about['threads']} threads, {about['device']}"
    table = Table("run", title=title, title_justify="left")
    table.add_column("tables", no_wrap=True)
    for column in ("batch", "tok/s", "p10 ms", "p50", "p90", "stall", "kB/token"):
        table.add_column(column, justify="right")
    values = ("tokens_per_second", "p10", "ms_per_token_p50", "p90", "stall_ms_per_token", "bytes_per_token")
    columns = [medians(bench.decode, SETTING, value) for value in values]
    for key in sorted(columns[0], key=lambda key: (list(about["table_bytes"]).index(key[0]), key[3])):
        speed, p10, p50, p90, stall, size = (column[key] for column in columns)
        variant, tier, prefetch, batch = key
        numbers = (f"{speed:,.1f}", f"{p10:.2f}", f"{p50:.2f}", f"{p90:.2f}", f"{stall:.3f}", f"{size / 1e3:.2f}")
        table.add_row(variant, f"{tier}, ahead" if prefetch else tier, str(batch), *numbers)
    Console().print(table)
    table = Table("run", title="training, whole steps", title_justify="left")
    for column in ("tokens/s", f"x {about['baseline']}", "tables' update ms"):
        table.add_column(column, justify="right")
    for (variant,), speed in medians(bench.training, ["variant"], "tokens_per_second").items():
        relative = about["training_relative"].get(variant)
        shown = "-" if relative is None else f"{relative:.3f}"
        table.add_row(variant, f"{speed:,.0f}", shown, f"{about['table_update_ms'][variant]:.1f}")
    Console().print(table)
    if about["diverged"]:
        Console().print(f"no model, as the training diverged: {', '.join(about['diverged'])}")
