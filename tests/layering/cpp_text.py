# SPDX-License-Identifier: Apache-2.0
"""C++ text without what is not code, and the function bodies in it. Knows as much of the language
as clang-format's output needs."""

import re

NOT_CODE = re.compile(
    r'R"(?P<mark>[^()\\ ]{0,16})\(.*?\)(?P=mark)"'  # raw strings
    r"|//[^\n]*|/\*.*?\*/"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])+'"  # not the separator of 1'000
    r"|^[ \t]*#(?:\\\n|[^\n])*",  # directives, with what they continue to
    re.MULTILINE | re.DOTALL)
SCOPE = re.compile(r"\b(namespace|class|struct|union|enum|extern)\b(?![^{]*\))")
# What may stand between a function's parameters and its body.
FUNCTION_END = re.compile(
    r"\)\s*(const|noexcept|override|final|mutable|&|&&|->\s*[\w:<>,&*\s()]+|\s)*$")
INITIALISERS = re.compile(r"\)\s*(noexcept\s*)?:(?!:)[^;]*[)}]\s*$")
# In the middle of a constructor's initialisers: `: a_(a), b_` before `{b}`.
INITIALISER = re.compile(r"\)\s*(noexcept\s*)?:(?!:)[^;]*[\w>]$")


def code_only(text):
    """`text` with comments, literals and directives blanked, every character at its place."""
    return NOT_CODE.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)


def matching(code, start):
    """The index of the bracket that closes the one at `start`, or the end of the text."""
    closes = {"(": ")", "{": "}"}[code[start]]
    depth = 0
    for index in range(start, len(code)):
        if code[index] == code[start]:
            depth += 1
        elif code[index] == closes:
            depth -= 1
            if depth == 0:
                return index
    return len(code)


def functions(text):
    """Every function with a body that is in no other one, as (first line, last line)."""
    code = code_only(text)
    begin = 0  # of what leads to the next brace
    index = 0
    while index < len(code):
        letter = code[index]
        if letter == "{":
            head = code[begin:index]
            if INITIALISER.search(head):
                index = matching(code, index) + 1
                continue
            if not SCOPE.search(head) and (FUNCTION_END.search(head) or INITIALISERS.search(head)):
                end = matching(code, index)
                first = begin + len(head) - len(head.lstrip())
                yield code.count("\n", 0, first) + 1, code.count("\n", 0, end) + 1
                index = end
        elif letter == "(":
            index = after_parameters(code, index)
            continue
        if code[index:index + 1] in ("{", "}", ";"):
            begin = index + 1
        index += 1


def after_parameters(code, index):
    """Past a pair of round brackets that holds no lambda; else past the opening one."""
    end = matching(code, index)
    return index + 1 if re.search(r"\]\s*(\([^()]*\)[^{;]*)?\{", code[index:end]) else end + 1
