"""Every message of the command speaks of options and files, never of Python's parameters."""

import re

import numpy as np
import pytest
from typer.testing import CliRunner

from xtrellis import TrellisClassifier, TrellisTextClassifier
from xtrellis.command.app import app

FILES = {
    "rows.tsv": "a\tred apple\nb\tfast car\n" * 10,
    "rows.svm": "1 1:1\n2 2:1\n" * 10,
    "rows.txt": "red apple\nfast car\n",
    "rows.csv": "words,code\nred apple,a\nfast car,b\n",
    "rows.ft": "__label__a red apple\n__label__b fast car\n",
    "one_class.tsv": "a\tone\na\ttwo\n",
    "no_terms.tsv": "a\t...\nb\t?\n",
    "no_label.svm": "1:1\n2:1\n",
    "large.svm": "1 1:1e20\n2 2:1\n",
    "zero.svm": "1 0:1\n2 2:1\n",
    "empty.tsv": "",
    "broken.tsv": "a\tone\nno tab\n",
    "tab.csv": 'text,label\nx,"a\tb"\ny,c\n',
    "header.tsv": "label\ttext\na\tone\n",
    "latin.tsv": b"a\t\xe9\nb\tx\n",
    "numbers.tsv": "1\tred apple\n2\tfast car\n",
}
WRONG = [
    "train rows.txt new",
    "train rows.csv new",
    "train rows.csv new --text-column words",
    "train one_class.tsv new",
    "train no_terms.tsv new",
    "train no_label.svm new",
    "train large.svm new",
    "train zero.svm new --one-based --valid zero.svm",
    "train empty.tsv new",
    "train broken.tsv new",
    "train tab.csv new",
    "train header.tsv new",
    "train latin.tsv new",
    "train nothing.tsv new",
    "train . new",
    "train rows.tsv .",
    "train rows.tsv rows.tsv",
    "train rows.tsv nowhere/new",
    "train rows.tsv new --valid rows.svm",
    "train rows.tsv new --valid rows.tsv --prune 1",
    "train rows.tsv new --width 1",
    "train rows.tsv new --width x",
    "train rows.tsv new --training joint --width auto",
    "train rows.tsv new --training joint --epochs 0",
    "train rows.tsv new --epochs 0",
    "train rows.tsv new -C -1",
    "train rows.tsv new -C nan",
    "train rows.tsv new --learner arow -C 1",
    "train rows.tsv new --jobs 0",
    "predict text rows.txt --jobs 0",
    "evaluate text rows.tsv --jobs 0",
    "train rows.tsv new --min-df 0",
    "train rows.tsv new --min-df 99",
    "train rows.tsv new --hash-size 0",
    "train rows.tsv new --words 0 --characters 0",
    "train rows.tsv new --words 3-1",
    "train rows.tsv new --characters x",
    "train rows.tsv new --trellises 0",
    "train rows.tsv new --seed -1",
    "train rows.csv new --text-column words --label-column code --prune 0.1",
    "train rows.txt new -f svmlight",
    "train rows.tsv new -f csv",
    "train rows.tsv new -f fasttext",
    "train rows.tsv new -f lines",
    "train rows.svm new --min-df 2",
    "train rows.svm new --hash-size 64",
    "train rows.svm new --memory inf",
    "widths rows.svm --words 1",
    "convert nothing.tsv new",
    "convert empty.tsv new",
    "convert no_terms.tsv new",
    "convert broken.tsv new",
    "convert rows.svm rows.svm",
    "convert rows.svm new --shard-size inf",
    "convert rows.svm new --shard-size 0",
    "convert . new",
    "predict nothing rows.txt",
    "predict rows.txt rows.txt",
    "predict text rows.tsv",
    "predict text rows.ft",
    "predict text rows.svm",
    "predict text rows.csv",
    "predict text rows.txt -f csv",
    "predict text rows.txt -o text",
    "predict text rows.txt -o rows.txt",
    "predict text rows.txt -k 0",
    "predict text rows.txt --min-probability 2",
    "predict text rows.txt --otherwise none",
    "predict text rows.txt --coverage 0.9",
    "predict text rows.txt --coverage 1",
    "predict text rows.txt --coverage 0.9 --proba",
    "explain text apple --label none",
    "explain text apple --plot text",
    "explain features apple",
    "predict tabs rows.txt",
    "predict features rows.svm",
    "predict features rows.tsv",
    "predict features rows.tsv -f tsv",
    "evaluate text rows.txt",
    "evaluate text rows.svm",
    "evaluate text numbers.tsv --label-column x -f csv",
    "evaluate features rows.tsv",
    "evaluate features rows.svm",
    "evaluate features no_label.svm --zero-based",
    "prune text rows.tsv text",
    "prune text rows.tsv rows.tsv",
    "prune text rows.tsv new --max-drop 2",
    "prune text rows.tsv new --threshold -1",
    "inspect rows.txt",
    "inspect nothing",
    "widths rows.tsv --training joint",
    "widths rows.tsv --widths x",
    "widths rows.tsv --widths 1",
    "widths rows.tsv --widths 2,2",
    "widths rows.tsv --max-bytes 1",
    "widths rows.tsv --max-bytes -1",
    "widths rows.tsv --plot rows.tsv",
    "demo -o rows.txt",
]
_QUOTED = re.compile(r"'[^']*'|\S*\.(?:tsv|svm|txt|csv|ft)\S*")
_PYTHON = re.compile(
    r"\b(?:True|False|None|X|y|self|array|ndarray|dtype|Traceback|\w+Error)\b"
    r"|\b[a-z]+_[a-z_]+|\w=|\(\)|\bread_|\bsay\b"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("messages")
    for name, content in FILES.items():
        content = content if isinstance(content, bytes) else content.encode()
        (folder / name).write_bytes(content)
    texts, labels = ["red apple", "fast car"] * 10, ["a", "b"] * 10
    TrellisTextClassifier().fit(texts, labels).save(folder / "text")
    TrellisTextClassifier().fit(texts, ["a\tb", "b"] * 10).save(folder / "tabs")
    TrellisClassifier().fit(np.eye(3)[[0, 1, 2] * 5], [0, 1, 2] * 5).save(folder / "features")
    return folder


@pytest.mark.parametrize("line", WRONG)
def test_wrong_commands_end_in_one_plain_line(folder, monkeypatch, line):
    monkeypatch.chdir(folder)
    before = {path: path.read_bytes() for path in folder.iterdir()}
    done = CliRunner().invoke(app, line.split())
    assert done.exit_code in (1, 2), done.output
    assert before == {path: path.read_bytes() for path in folder.iterdir()}
    shown = done.stderr.replace("compiling kernels, once on this machine\n", "")
    if done.exit_code == 1:
        assert shown.count("\n") == 1, shown
        assert shown.startswith("error: ")
    found = _PYTHON.search(_QUOTED.sub("", shown))
    assert found is None, f"{found[0]} in {shown}"


@pytest.mark.parametrize(
    ("name", "told"),
    {
        "no_terms.tsv": "the texts contain no terms at all",
        "large.svm": "there is a value of size 1e+20, too large to train on: scale the features",
    }.items(),
)
def test_rows_that_cannot_be_trained_on_are_named(name, told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text(FILES[name])
    done = CliRunner().invoke(app, ["train", name, "new"])
    assert done.exit_code == 1
    assert done.stderr.splitlines()[-1] == f"error: {name}: {told}"
