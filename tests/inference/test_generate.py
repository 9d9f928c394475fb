"""The command line, and text from ids."""

import subprocess
import sys

import pytest
from tiny_runs import TEXTS
from typer.testing import CliRunner

from lexmem.inference.__main__ import app
from lexmem.inference.decode import generate
from lexmem.inference.sampling import Sampling
from lexmem.inference.text import stream_text
from lexmem.spec.errors import UserError

OPTIONS = ["--max-new-tokens", "15", "--temperature", "1.0", "--top-p", "1.0", "--seed", "7"]


def output(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["generate", *arguments])
    if result.exception:
        raise result.exception
    return result.output


@pytest.mark.parametrize("tier", ["resident", "disk"])
def test_the_prompt_and_what_follows_are_printed(run_folder, run, tier):
    ids = run.tokenizer.encode("The sea").ids
    expected = run.tokenizer.decode(list(generate(run, ids, 15, Sampling(1.0, 0, 1.0, 7))))
    assert output("--run", str(run_folder), "--prompt", "The sea", "--tier", tier, *OPTIONS) == f"The sea{expected}\n"


def test_without_a_prompt_a_document_begins(run_folder, run):
    expected = run.tokenizer.decode(list(generate(run, [], 15, Sampling(1.0, 0, 1.0, 7))))
    assert output("--run", str(run_folder), *OPTIONS) == f"{expected}\n"


def test_a_run_that_is_missing_is_one_line_with_the_nearest(run_folder, tmp_path, monkeypatch):
    project = tmp_path / "project"
    (project / "runs" / "tiny").mkdir(parents=True)
    run_folder.rename(project / "runs" / "tiny" / "one-0")
    monkeypatch.chdir(project)
    with pytest.raises(UserError, match=r"did you mean 'runs/tiny/one-0'"):
        output("--run", "runs/tiny/one-1")
    (project / "runs" / "tiny" / "one-1").mkdir()
    with pytest.raises(UserError, match="no trained model"):
        output("--run", "runs/tiny/one-1")


def test_the_command_exits_with_one_line(tmp_path):
    command = [sys.executable, "-m", "lexmem.inference", "generate", "--run", "nowhere"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("error: run = nowhere: no such folder")
    assert done.stderr.count("\n") == 1


def test_streamed_text_is_the_whole_text(run):
    texts = [*TEXTS, "naïve 日本語 — “ship”\n\tsea", "a\ufffdb\ufffd", ""]
    for text in texts:
        ids = run.tokenizer.encode(text).ids
        pieces = list(stream_text(run.tokenizer, ids))
        assert "".join(pieces) == text
    assert "日" in list(stream_text(run.tokenizer, run.tokenizer.encode("日本").ids))
    half = run.tokenizer.encode("é").ids[:1]
    assert list(stream_text(run.tokenizer, half)) == ["\ufffd"]
