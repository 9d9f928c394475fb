"""Every path of a preset carries its name, and none is another's."""

from pathlib import Path

from lexmem.spec.layout import Layout


def paths(layout: Layout) -> list[Path]:
    folders = [layout.corpus, layout.tokens, layout.allocation, layout.tasks, layout.scratch, layout.tables]
    stages = [layout.metrics(stage) for stage in ("pretrain", "evaluate", "bench")]
    runs = [layout.run(variant, seed) for variant in ("dense", "tide") for seed in (0, 1)]
    return [*folders, layout.figures, *stages, *runs, layout.plan("dense"), layout.plan("tide")]


def test_presets_share_no_path():
    small, large = paths(Layout("small")), paths(Layout("large"))
    assert len(set(small) | set(large)) == len(small) + len(large)
    assert all(path.parts[1] == "small" for path in small)
    for path in small:
        assert not any(other in path.parents for other in small)


def test_outputs_are_where_git_ignores_them_and_results_are_not():
    ignored = (Path(__file__).parents[2] / ".gitignore").read_text().split()
    layout = Layout("p")
    for path in (layout.corpus, layout.run("dense", 0), layout.plan("dense"), layout.scratch):
        assert f"/{path.parts[0]}/" in ignored or f"{path.parts[0]}/" in ignored
    assert "/results/" not in ignored and "results/" not in ignored


def test_a_root_comes_first(tmp_path):
    assert Layout("p", tmp_path).run("dense", 3) == tmp_path / "runs/p/dense-3"
