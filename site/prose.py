"""Turns the plain text of comments and docstrings into reStructuredText.

Plain text has paragraphs, indented examples, lists with "- " or "1. ", and tables of a term and its meaning:

    x        array of any shape, whose text may
             go on, indented
    format   the format to round to

Quoted `code`, --options, calls like Encode() and the names in `known` become code, the names with a link.
"""

import re

TERM = re.compile(r"^(?P<term>\S(?:.{0,38}?\S)?)(?: {2,}|: {2,}|\t)(?P<text>\S.*)$")
BULLET = re.compile(r"^(?:[-*]|\d+\.) +")
# `code`, a page, an option, a word with parentheses, NUMSIM_NAME, CamelCase or kName, snake_case.
WORD = re.compile(
    r"`(?P<quoted>[^`]+)`"
    r"|(?P<page>\bdocs/[\w/-]+\.md\b)"
    r"|(?P<option>(?<![\w-])--[a-z][\w-]*)"
    r"|(?P<call>\b[A-Za-z_][\w:.]*\(\))"
    r"|(?P<name>(?<![\w\[/.-])(?:[A-Za-z]+::)*"
    r"(?:[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]*)+|k[A-Z]\w+|[a-z]+_\w*[a-z0-9]|NUMSIM_\w+|[A-Z][a-z]+)"
    r"\b(?![\w\]/.-]\w))"
)


def escape(text):
    """Returns the text so that reStructuredText shows it as it is."""
    # FILE:LINE and format@block would be links.
    return re.sub(r"([\\*`|]|_(?=\W|$)|(?<=\w)[:@](?=\w))", r"\\\1", text)


def literal(code):
    """Returns inline code; reStructuredText has no code that begins or ends with a blank."""
    return f"``{code.strip()}``" if code.strip() else ""


def inline(text, known=None):
    """Returns the text of a paragraph as reStructuredText, with the names of `known` as links.

    known   {name: role and target, such as ":cpp:func:`numsim::Encode`"}
    """
    known = known or {}
    parts, end = [], 0
    for match in WORD.finditer(text):
        parts.append(escape(text[end : match.start()]))
        end = match.end()
        if match.group("page"):
            parts.append(f":doc:`{match.group('page')} </{match.group('page').removesuffix('.md')}>`")
            continue
        word = match[0].strip("`")
        link = known.get(word.removesuffix("()").removeprefix("numsim::"))
        # A word such as NaN, PyTorch or the first of a sentence is a name only if there is one in code.
        single = not re.search(r"[_:]|^k[A-Z]", word) and not (link and re.search(r"[a-z0-9][A-Z]", word))
        called = link and text[end : end + 1] == "("
        is_word = match.group("name") and single and not called
        if is_word:
            parts.append(escape(word))
        elif link:
            parts.append(link)
        else:
            parts.append(literal(word))
    parts.append(escape(text[end:]))
    # Inline markup needs white space or punctuation on both sides: "\\ " is a blank that is not shown.
    result = parts[0]
    for markup, after in zip(parts[1::2], parts[2::2]):
        if markup.startswith((":", "``")):
            if not re.search(r"(^|[\s'\"(\[{<\-/:])$", result):
                result += "\\ "
            if not re.match(r"[\s'\")\]}>\-/:.,;!?]|$", after):
                after = "\\ " + after
        result += markup + after
    return result


def blocks(lines):
    """Yields runs of lines between blank lines."""
    run = []
    for line in [*lines, ""]:
        if line.strip():
            run.append(line.rstrip())
        elif run:
            yield run
            run = []


def indent_of(line):
    return len(line) - len(line.lstrip())


def terms(run):
    """Returns [(term, text)] if the lines are a table of terms, else None."""
    first = TERM.match(run[0])
    if not first or BULLET.match(run[0]) or indent_of(run[0]):
        return None
    column, rows = first.start("text"), []
    for line in run:
        match = TERM.match(line)
        if indent_of(line) >= 2 and rows:
            rows[-1][1].append(line.strip())
        elif line[column - 1 : column] == " " and line[column : column + 1].strip():  # a term may fill its column
            rows.append([line[:column].strip(), [line[column:]]])
        elif match and not BULLET.match(line):
            rows.append([match["term"], [match["text"]]])
        else:
            return None
    return [(term, " ".join(text)) for term, text in rows]


def bullets(run):
    """Returns the texts of a list, or None if the lines are no list."""
    items = []
    for line in run:
        match = BULLET.match(line)
        if match and indent_of(line) == 0:
            items.append([line[match.end() :]])
        elif items and indent_of(line) >= 1:
            items[-1].append(line.strip())
        else:
            return None
    return [" ".join(item) for item in items]


def split(run):
    """Yields parts of a run: an indented example and the paragraph around it are separate."""
    part = []
    for line in run:
        if part and (indent_of(line) >= 2) != (indent_of(part[-1]) >= 2):
            yield part
            part = []
        part.append(line)
    yield part


def rst(text, known=None):
    """Returns the lines of reStructuredText for a plain text."""
    result = []
    for run in blocks(text.expandtabs(4).split("\n")):
        table, items = terms(run), bullets(run)
        if table:
            for term, meaning in table:
                result += [literal(term.replace("`", "")), "   " + inline(meaning, known)]
            result.append("")
        elif items:
            for item in items:
                result += ["- " + inline(item, known)]
            result.append("")
        else:
            for part in split(run):
                if indent_of(part[0]) >= 2 and not terms([line.strip() for line in part]):
                    result += ["::", "", *("   " + line for line in part), ""]
                elif indent_of(part[0]) >= 2:
                    result += [*rst("\n".join(line.strip() for line in part), known), ""]
                else:
                    result += [inline(" ".join(line.strip() for line in part), known), ""]
    return result
