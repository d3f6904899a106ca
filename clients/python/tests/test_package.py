"""What is published."""

from __future__ import annotations

import re
import unittest
from pathlib import Path

import holdfast

HERE = Path(__file__).resolve().parent.parent


class TestPackage(unittest.TestCase):
    def test_metadata_names_what_is_there(self) -> None:
        text = (HERE / "pyproject.toml").read_text()
        for line in ('name = "holdfast-memory"', 'requires-python = ">=3.9"', "dependencies = []", 'packages = ["holdfast"]',
                     'holdfast = ["py.typed"]', 'version = { attr = "holdfast.calls.VERSION" }'):
            self.assertIn(line, text)
        self.assertRegex(holdfast.__version__, r"^\d+\.\d+\.\d+$")
        for file in ("README.md", "LICENSE", "holdfast/py.typed"):
            self.assertTrue((HERE / file).is_file(), file)

    def test_license_is_that_of_the_repository(self) -> None:
        self.assertEqual((HERE / "LICENSE").read_bytes(), (HERE.parent.parent / "LICENSE").read_bytes())

    def test_nothing_but_the_standard_library_is_imported(self) -> None:
        allowed = {
            "__future__", "asyncio", "dataclasses", "holdfast", "datetime", "email", "functools", "http", "inspect", "io", "json", "os",
            "random", "re", "socket", "ssl", "threading", "time", "typing", "urllib", "uuid",
        }
        for file in (HERE / "holdfast").glob("*.py"):
            for name in re.findall(r"^\s*(?:import|from) ([A-Za-z_]+)", file.read_text(), re.M):
                self.assertIn(name, allowed, file.name)

    def test_every_public_name_is_there(self) -> None:
        for name in holdfast.__all__:
            self.assertTrue(hasattr(holdfast, name), name)
