# SPDX-License-Identifier: Apache-2.0
"""What README.md shows of the examples are the examples: their marked regions and their configuration.
What docs/migrating.md shows parses."""

import ast
import pathlib
import re
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
REGION = re.compile(r"^(?://|#) README: (?!end$)\S+\n(.*?)^(?://|#) README: end$", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def regions(source):
    """The parts of a source file between `// README: NAME` and `// README: end`."""
    return [text.strip("\n") for text in REGION.findall(source)]


def blocks(document, language):
    """The fenced blocks of a document that are marked with a language."""
    return [text.strip("\n") for found, text in BLOCK.findall(document) if found == language]


class Readme(unittest.TestCase):
    maxDiff = None

    def test_its_code_is_the_compiled_examples(self):
        source = (TOP / "examples/cpp_trainer/main.cc").read_text(encoding="utf-8")
        self.assertEqual(source.count("// README: "), 2 * len(regions(source)))
        self.assertGreater(len(regions(source)), 0)
        self.assertEqual(blocks((TOP / "README.md").read_text(encoding="utf-8"), "cpp"),
                         regions(source))

    def test_its_python_is_the_python_examples(self):
        source = (TOP / "examples/python_trainer/train.py").read_text(encoding="utf-8")
        readme = (TOP / "README.md").read_text(encoding="utf-8")
        self.assertEqual(blocks(readme, "python"), regions(source))

    def test_migrating_shows_python(self):
        shown = blocks((TOP / "docs/migrating.md").read_text(encoding="utf-8"), "python")
        self.assertGreater(len(shown), 5)
        for block in shown:
            ast.parse(block)

    def test_its_configuration_is_the_shipped_one(self):
        shipped = (TOP / "examples/pushrod.yaml").read_text(encoding="utf-8")
        _, _, text = shipped.partition("\n")  # without the licence line
        self.assertEqual(blocks((TOP / "README.md").read_text(encoding="utf-8"), "yaml"),
                         [text.strip("\n")])


class Finding(unittest.TestCase):
    SOURCE = "int a;\n// README: one\nint b;\n\n// README: end\n// README: two\nint c;\n// README: end\n"

    def test_regions_end_at_their_marks(self):
        self.assertEqual(regions(self.SOURCE), ["int b;", "int c;"])

    def test_blocks_are_found_by_language(self):
        document = "text\n```cpp\nint b;\n```\n```\nmake\n```\n```yaml\na: 1\n```\n"
        self.assertEqual(blocks(document, "cpp"), ["int b;"])
        self.assertEqual(blocks(document, "yaml"), ["a: 1"])


if __name__ == "__main__":
    unittest.main()
