"""Mistakes of users end in one line, others in a traceback."""

import subprocess
import sys

import pytest

from lexmem.spec.errors import UserError, exit_on_user_error, nearest


def test_nearest_lists_all_and_hints_at_one():
    assert nearest("tyde", ["moe", "tide"]) == "allowed: moe, tide (did you mean 'tide'?)"
    assert nearest("zzz", ["tide", "moe"]) == "allowed: moe, tide"
    assert nearest(3, []) == "allowed: "


def test_a_user_error_is_one_line_and_status_2(capsys):
    def main():
        raise UserError("train.lr = 'x': a number, please")

    with pytest.raises(SystemExit) as caught:
        exit_on_user_error(main)
    assert caught.value.code == 2
    assert capsys.readouterr().err == "error: train.lr = 'x': a number, please\n"


def test_other_errors_pass_through():
    def main():
        raise ValueError("ours")

    with pytest.raises(ValueError, match="ours"):
        exit_on_user_error(main)


@pytest.mark.parametrize("stage", ["corpus", "report", "study"])
def test_stages_say_so_before_any_work(stage):
    done = subprocess.run(
        [sys.executable, "-m", f"pipelines.{stage}", "--preset", "pockt"], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("error: preset = 'pockt'")
    assert "did you mean 'pocket'?" in done.stderr
