"""Lays out the sources of the site: the pages as they are, and those that are written from the code.

Pages keep their places, so that their links to each other hold. Links to headers lead to the reference; other
files that pages link to become pages that show them.
"""

import argparse
import csv
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess

import command_pages
import cpp_pages
import pages
import python_pages

ROOT = pages.ROOT
LANGUAGES = {
    ".c": "c", ".cc": "cpp", ".h": "cpp", ".py": "python", ".toml": "toml", ".sh": "bash", ".v": "verilog",
    ".csv": "text", ".txt": "text",
}  # fmt: skip
SHOWN_IN_FOLDERS = (".c", ".cc", ".h", ".toml", ".txt")
PAGES_OF_FOLDERS = {"experiments/published": "/results/published.md"}


def write(path, text):
    """Writes a file unless it has that text: what did not change is not built again."""
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


class Stage:
    def __init__(self, folder):
        self.folder = folder
        self.headers = {}  # path of a header: (page, anchor)
        self.shown = set()  # files and folders that have a page of their own

    def link(self, page, match):
        """Returns a link of a page as it is in the site."""
        target = match["target"].partition("#")[0]
        if target.endswith(".md") and match["text"].strip("`") == os.path.basename(target):
            page_file = (ROOT / os.path.dirname(page) / target).resolve()
            return f"[{pages.title_and_sentence(page_file)[0]}]({match['target']})"
        if not target or re.match(r"[a-z]+:", target) or target.endswith((".md", ".svg", ".png", ".ipynb")):
            return match[0]
        place = os.path.normpath(os.path.join(os.path.dirname(page), target))
        if place in self.headers:
            return f"[{match['text']}](#{self.headers[place][1]})"
        if place in PAGES_OF_FOLDERS:
            return f"[{match['text']}]({PAGES_OF_FOLDERS[place]})"
        if not (ROOT / place).exists():
            return match[0]
        return self.shown_link(match["text"], place)

    def shown_link(self, text, place):
        """Returns a link to the page that shows a file or folder."""
        self.shown.add(place)
        return f"[{text}](#{self.label(place)})"

    @staticmethod
    def label(place):
        return "file-" + re.sub(r"\W+", "-", place)

    def page(self, source):
        """Copies a page with its links changed; code stays as it is."""
        place = source.relative_to(ROOT).as_posix()
        text = source.read_text(encoding="utf-8")
        bare = pages.without_code(text).split("\n")
        lines = text.split("\n")
        for number, line in enumerate(lines):
            if "](" in bare[number]:
                lines[number] = pages.LINK.sub(lambda match: self.link(place, match), line)
        text = re.sub(r'(?m)^<a id="([\w-]+)"></a>$', r"(\1)=", "\n".join(lines))
        write(self.folder / place, text)

    def file_page(self, place):
        """A page that shows a file, or lists a folder."""
        lines = [":orphan:", "", f".. _{self.label(place)}:", "", place, "=" * len(place), ""]
        path = ROOT / place
        if path.is_dir():
            for inner in sorted(path.rglob("*")):
                if inner.is_file() and inner.suffix in SHOWN_IN_FOLDERS:
                    name = inner.relative_to(ROOT).as_posix()
                    self.shown.add(name)
                    lines.append(f"- :ref:`{name} <{self.label(name)}>`")
        else:
            language = LANGUAGES.get(path.suffix, "text")
            write(self.folder / place, path.read_text(encoding="utf-8"))
            lines += [f".. literalinclude:: /{place}", f"   :language: {language}", ""]
        write(self.folder / "files" / f"{self.label(place).removeprefix('file-')}.rst", "\n".join(lines) + "\n")

    def file_pages(self):
        done = set()
        while self.shown - done:
            for place in sorted(self.shown - done):
                self.file_page(place)
                done.add(place)


def digest(folder):
    """The digest of a published run: `sha256sum * | sha256sum` in its folder, names in the order of their bytes."""
    lines = ""
    for path in sorted(folder.iterdir(), key=lambda path: path.name.encode()):
        if path.is_file():
            lines += f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"
    return hashlib.sha256(lines.encode()).hexdigest()


def published_page():
    """The list of published runs with their digests and verdicts."""
    lines = [
        "# Published runs",
        "",
        "This page lists the runs that the results are quoted from, each with its digest. [How to cite a run]"
        "(../docs/citing.md#a-published-run) says what the digest is of.",
        "",
        "| run | page | verdicts | digest |",
        "| --- | --- | --- | --- |",
    ]
    folder = ROOT / "experiments/published"
    with open(folder / "runs.csv", newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            run = folder / row["directory"]
            counts = {}
            with open(run / "verdicts.csv", newline="", encoding="utf-8") as verdicts:
                for verdict in csv.DictReader(verdicts):
                    counts.setdefault(verdict["verdict"], set()).add(verdict["claim"])
            said = ", ".join(f"{len(claims)} {verdict}" for verdict, claims in sorted(counts.items()))
            title = pages.title_and_sentence(ROOT / row["page"])[0].split(":")[0]
            lines.append(f"| {row['directory']} | [{title}](../{row['page']}) | {said} | `{digest(run)[:16]}` |")
    return "\n".join(lines) + "\n"


TITLES = {"README": "Overview", "docs/results": "Results by experiment"}  # where a page's own title says too little


def entry(page):
    """The line of a page in a list of contents."""
    return f"{TITLES[page]} </{page}>" if page in TITLES else f"/{page}"


def group_page(group, existing):
    """A page with what its pages are about, and their place in the navigation."""
    lines = [f"# {group['title']}", "", group["about"], ""]
    for page in group["pages"]:
        source = pages.source_of(page)
        if source is None:
            title, sentence = existing[page]
        else:
            title, sentence = pages.title_and_sentence(source)
        title = TITLES.get(page, title)
        lines += [f"[{title}](/{page})", f": {sentence or title}", ""]
    lines += ["```{toctree}", ":hidden:", "", *(entry(page) for page in group["pages"]), "```", ""]
    return "\n".join(lines)


ABOUT = {
    "reference/commands/index": ("Command line", "Every command of the program with its options, from its own help."),
    "reference/python/index": ("Python reference", "Every public name of `import numsim`, from its docstrings."),
    "reference/cpp/index": ("C++ reference", "Every public name of the library, from the headers that are installed."),
    "reference/c": ("C reference", "Every function, struct and constant of `numsim.h`."),
    "results/published": ("Published runs", "The runs that the results are quoted from, with their digests."),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path, help="where the sources of the site are written")
    parser.add_argument("--program", required=True, help="the numsim program, whose help becomes pages")
    options = parser.parse_args()
    folder = options.folder
    stage = Stage(folder)
    reference = folder / "reference"
    stage.headers = cpp_pages.write(reference)
    command_pages.write(reference, options.program)
    python_pages.write(reference)
    for page in pages.all_sources():
        stage.page(ROOT / f"{page}.md")
    shutil.copytree(ROOT / "docs/figures", folder / "docs/figures", dirs_exist_ok=True)
    notebooks = sorted((ROOT / "notebooks").glob("*.ipynb"))
    for notebook in notebooks:
        write(folder / "notebooks" / notebook.name, notebook.read_text(encoding="utf-8"))
    below = ["", "```{toctree}", ":hidden:", "", *(notebook.stem for notebook in notebooks), "```", ""]
    with open(folder / "notebooks/README.md", "a", encoding="utf-8") as file:
        file.write("\n".join(below))
    write(folder / "results/published.md", published_page())
    groups = pages.navigation()
    for group in groups:
        group["pages"] = [p for p in group["pages"] if pages.source_of(p) is None or pages.source_of(p).exists()]
        write(folder / f"{group['name']}.md", group_page(group, ABOUT))
    stage.file_pages()
    for name in ("index.md", "conf.py", "playground.md"):
        write(folder / name, (ROOT / "site" / name).read_text(encoding="utf-8"))
    formats = subprocess.run([options.program, "formats", "--json"], capture_output=True, text=True, check=True)
    write(folder / "generated/formats.js", f"window.numsimFormats = {json.dumps(json.loads(formats.stdout))};\n")


if __name__ == "__main__":
    main()
