"""Examples in docstrings and in README.md."""

from __future__ import annotations

import doctest
from pathlib import Path

import urlseen
import urlseen.scrapy

README = Path(__file__).parents[1] / "README.md"


def test_the_examples_in_docstrings_are_right() -> None:
    results = doctest.testmod(urlseen)
    assert results.failed == 0 and results.attempted > 0
    # doctest does not find the docstrings of functions that are not written in Python.
    objects = [urlseen, *map(vars(urlseen).get, urlseen.__all__), *vars(urlseen.Filter).values()]
    examples = 0
    for each in objects:
        text = getattr(each, "__doc__", None) or ""
        found = doctest.DocTestParser().get_doctest(text, {}, repr(each), None, 0)
        examples += len(found.examples)
        assert doctest.DocTestRunner().run(found).failed == 0, each
    assert examples > 12


def test_the_examples_in_the_readme_are_right(tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.chdir(tmp_path)
    results = doctest.testfile(str(README), module_relative=False)
    assert results.failed == 0 and results.attempted > 5
