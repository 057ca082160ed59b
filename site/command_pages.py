"""Writes the reference of the command line from the program's own help."""

import functools
import re
import subprocess

import prose

WIDE = 30  # the column of the texts
LIKE_RUN = ("pilot", "sweep", "tune")  # they take the options of `numsim run EXPERIMENT`


@functools.cache
def help_of(program, words):
    result = subprocess.run([program, *words, "--help"], capture_output=True, text=True, check=True)
    return result.stdout.rstrip("\n").split("\n")


def entries(lines):
    """[(head, text)] of a section of the help: `--format TEXT REQUIRED` and what it does."""
    found = []
    for line in lines:
        if line.startswith(" " * WIDE):
            head, text = found[-1]
            found[-1] = (head, f"{text} {line.strip()}".strip())
        elif line.startswith("  "):
            head, text = line[2:WIDE].rstrip(), line[WIDE:].strip()
            if line[WIDE - 2 : WIDE].strip():  # the head is longer than its column
                head, text = line.strip(), ""
            found.append((head, text))
    return found


def sections(lines):
    """{title: lines} of a help; the text above the first title is that of None."""
    found, title = {None: []}, None
    for line in lines:
        match = re.match(r"^([A-Z][\w ]*):$", line)
        if match:
            title = match[1]
            found[title] = []
        else:
            found[title].append(line)
    return found


def options(section, known=()):
    """The lines of each option: as Sphinx's `option`, so that the search finds it and pages can link to it."""
    for head, text in entries(section):
        if (head, text) in known:
            continue
        if head.startswith("-"):
            names = re.match(r"^(-\S+?)(?:,(--\S+))?(?= |$)(.*)$", head)
            flag, long, rest = names[1], names[2], names[3].strip()
            shown = ", ".join(filter(None, (flag, long)))
            kind, notes = described(rest)
            shown = shown + (f" <{kind}>" if kind else "")
        else:
            kind, notes = described(head.split(" ", 1)[1] if " " in head else "")
            shown = head.split(" ", 1)[0]
        yield from [f".. option:: {shown}", "", "   " + prose.inline(text), ""]
        if notes:
            yield from ["   " + prose.inline(notes), ""]


def described(rest):
    """Returns (kind of value, what the help says about it in words) of `TEXT:INT in [1 - 32]=32 Excludes: --x`."""
    match = re.match(
        r"^(?P<kind>[A-Z0-9]+)?(?P<range>:[^=]*?(?=( REQUIRED|=| \.\.\.| Needs:| Excludes:|$)))?"
        r"(?P<default>=\S+)?(?P<required> REQUIRED)?(?P<more> \.\.\.)?(?P<tail>.*)$",
        rest,
    )
    if not match:
        return "", rest
    notes = []
    inside = re.search(r"in \[(.*?) - (.*?)\]", match["range"] or "")
    if inside:
        notes.append(f"From {inside[1]} to {inside[2]}.")
    if match["default"]:
        notes.append(f"Default: `{match['default'][1:]}`.")
    if match["required"]:
        notes.append("Required.")
    for word, names in re.findall(r"(Needs|Excludes): ((?:-\S+ ?)+)", match["tail"]):
        listed = ", ".join(f"`{name}`" for name in names.split())
        notes.append({"Needs": f"Only with {listed}.", "Excludes": f"Not with {listed}."}[word])
    return (match["kind"] or "").strip(), " ".join(notes)


def options_of_run(program, words):
    """The options of `numsim run EXPERIMENT` for another command on that experiment, else nothing."""
    if len(words) != 2 or words[0] not in LIKE_RUN:
        return set()
    experiments = [first_word(head) for head, _ in entries(sections(help_of(program, ("run",)))["Subcommands"])]
    if words[1] not in experiments:
        return set()
    return set(entries(sections(help_of(program, ("run", words[1])))["Options"]))


def command_lines(program, words):
    """Returns (lines of a command's page, its subcommands with their texts)."""
    parts = sections(help_of(program, tuple(words)))
    head = [line for line in parts[None] if line.strip()]
    usage = next((line for line in head if line.startswith("Usage:")), "")
    about = " ".join(line for line in head if not line.startswith("Usage:"))
    name = " ".join(["numsim", *words])
    lines = [prose.inline(about) + ("" if about.endswith(".") else "."), ""]
    if usage:
        lines += [".. code-block:: text", "", "   " + usage.removeprefix("Usage: "), ""]
    lines += [f".. program:: {name}", ""]
    known = options_of_run(program, words)
    if known:
        lines += [
            f"Also takes options of :ref:`numsim run {words[1]} <command-run-{words[1]}>` as they are described there:",
            "",
        ]
        same = [head.split(",")[-1].split()[0] for head, text in entries(parts["Options"]) if (head, text) in known]
        lines += [", ".join(prose.literal(option) for option in same) + ".", ""]
    for title in ("Positionals", "Options"):
        lines += options(parts.get(title, []), known)
    for title in parts:
        if title in (None, "Positionals", "Options", "Subcommands"):
            continue
        lines += [f".. rubric:: {title}", "", ".. code-block:: text", ""]
        lines += ["   " + line.removeprefix("  ") for line in parts[title]] + [""]
    return lines, entries(parts.get("Subcommands", []))


def underlined(title, letter):
    return [title, letter * len(title), ""]


def page(program, words, depth=0):
    """The lines of a command and, below it, of its subcommands."""
    lines, subcommands = command_lines(program, words)
    lines = [
        f".. _{'-'.join(['command', *words])}:",
        "",
        *underlined(" ".join(["numsim", *words]), "=-~"[depth]),
        *lines,
    ]
    for head, _ in subcommands:
        lines += page(program, [*words, first_word(head)], depth + 1)
    return lines


def first_word(head):
    """The name of a subcommand, which may have a second one."""
    return head.split(",")[0].split()[0]


def write(folder, program):
    folder = folder / "commands"
    folder.mkdir(parents=True, exist_ok=True)
    lines, subcommands = command_lines(program, [])
    index = [*underlined("Command line", "="), *lines]
    index += [".. toctree::", "   :hidden:", ""]
    names = [first_word(head) for head, _ in subcommands]
    index += [f"   {name}" for name in names] + [""]
    for (_, text), name in zip(subcommands, names):
        index += [f":doc:`numsim {name} <{name}>`", "   " + prose.inline(text), ""]
        (folder / f"{name}.rst").write_text("\n".join(page(program, [name])) + "\n", encoding="utf-8")
    (folder / "index.rst").write_text("\n".join(index) + "\n", encoding="utf-8")
