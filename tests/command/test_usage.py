"""A wrong command line is one line that says what must be given, and exit code 2."""

import pytest

from terminal import printed, run

WRONG = {
    "fly": "no such command 'fly'; see xtrellis --help",
    "train --fly": "no such option: --fly",
    "predict m --formt csv": "no such option: --formt (possible options: --format); see",
    "predict": "missing argument 'model'; see xtrellis predict --help",
    "predict m -k": "option '-k' requires an argument",
    "predict m -k a": "--top-k must be an integer, got 'a'; see xtrellis predict --help",
    "predict m -k 0": "--top-k must be greater than or equal to 1, got '0'",
    "predict m --coverage 2": "--coverage must be above 0 and below 1, got 2.0",
    "train a b -C x": "-C must be a number, got 'x'",
    "train a b --learner x": "--learner: 'x' is not one of 'svm', 'arow', 'perceptron'",
    "serve m --port 99999": "--port must be less than or equal to 65535, got '99999'",
}


@pytest.mark.parametrize("command", WRONG)
def test_wrong_command_lines(command):
    out, err = run(*command.split(), code=2)
    assert out == ""
    assert err.startswith(f"error: {WRONG[command]}")
    assert err.count("\n") == 1
    assert "--help\n" in err


def test_no_command_shows_the_help():
    out, err = run(code=2)
    assert "predict   Classify rows" in out + err
    assert "error" not in out + err


def test_the_help_is_no_error():
    assert "--top-k" in printed("predict", "--help")
