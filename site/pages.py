"""The navigation of the site, and what can be said of its pages without building them."""

import pathlib
import re
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
GENERATED = ("reference/", "results/")  # pages that the build writes
LINK = re.compile(r"(?<!!)\[(?P<text>(?:[^][]|\[[^][]*\])*)\]\((?P<target>[^()\s]+)\)")
IMAGE = re.compile(r"!\[[^][]*\]\((?P<target>[^()\s]+)\)")


def navigation(root=ROOT):
    with open(root / "site/navigation.toml", "rb") as file:
        return tomllib.load(file)["group"]


def source_of(page):
    """Returns the file of a page, or None if the build writes it."""
    return None if page.startswith(GENERATED) else ROOT / f"{page}.md"


def all_sources(root=ROOT):
    """The pages that must stand in the navigation."""
    found = [*root.glob("*.md"), root / "notebooks/README.md"]
    for folder in ("docs", "experiments", "tests"):
        found += root.glob(f"{folder}/**/*.md")
    return sorted(path.relative_to(root).with_suffix("").as_posix() for path in found)


def without_code(text):
    """The text with empty lines in place of its code blocks, and without inline code."""
    lines, fenced = [], False
    for line in text.split("\n"):
        fence = line.lstrip().startswith("```")
        lines.append("" if fenced or fence else re.sub(r"`[^`]*`", lambda m: " " * len(m[0]), line))
        fenced ^= fence
    return "\n".join(lines)


def title_and_sentence(path):
    """Returns the title of a page and the first sentence below it, as Markdown without links."""
    lines = path.read_text(encoding="utf-8").split("\n")
    title = next(line for line in lines if line.startswith("# ")).removeprefix("# ")
    body = "\n".join(lines[lines.index(f"# {title}") + 1 :]).strip().split("\n\n")[0]
    body = LINK.sub(lambda match: match["text"], " ".join(body.split()))
    sentence = re.match(r"(.+?[.?])(?= |$)", body)
    return title, "" if body.startswith(("|", "```")) else (sentence[1] if sentence else body)


def slug(heading):
    """The anchor of a heading, as on the pages of repositories."""
    text = re.sub(r"[`*]|\[([^]]*)\]\([^)]*\)", lambda m: m[1] or "", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def anchors(path):
    """The anchors of the headings of a page; a repeated one gets a number."""
    found = {}
    fenced = False
    for line in path.read_text(encoding="utf-8").split("\n"):
        fenced ^= line.lstrip().startswith("```")
        found |= {name: 0 for name in re.findall(r'<a id="([\w-]+)"></a>', line)}
        match = None if fenced else re.match(r"#{1,6} (.*)", line)
        if match:
            name = slug(match[1])
            count = found.get(name, -1) + 1
            found[name] = count
            if count:
                found[f"{name}-{count}"] = 0
    return set(found)
