#!/usr/bin/env python3
"""Checks a built site: every link of every page leads to a file, and to a place in it, that is there.

  check_built.py FOLDER   prints PAGE: link for each that does not; exits with 1 if there is one

Sphinx checks the links of the sources; this sees what became of them, and what pages load. Nothing may come from
another host, so that the site works from a folder.
"""

import html.parser
import pathlib
import re
import sys
import urllib.parse

LOADED = ("script", "link", "img", "iframe", "source")  # elements whose links a page loads by itself


class Page(html.parser.HTMLParser):
    """The places in a page, and its links."""

    def __init__(self, path):
        super().__init__()
        self.places, self.links = set(), []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.places |= {found[key] for key in ("id", "name") if found.get(key)}
        self.links += [(tag, found[key]) for key in ("href", "src") if found.get(key)]


def problems(folder):
    built = (path for path in folder.rglob("*.html") if "_static" not in path.relative_to(folder).parts)
    found = {path: Page(path) for path in built}
    for path, page in sorted(found.items()):
        name = path.relative_to(folder)
        for tag, link in page.links:
            if re.match(r"[a-z]+:|//", link):
                if tag in LOADED and not link.startswith("data:"):
                    yield f"{name}: loads {link}"
                elif tag not in LOADED and not link.startswith(("http:", "https:")):
                    yield f"{name}: a text became the link {link}"
                continue
            target, _, place = link.partition("#")
            target = urllib.parse.unquote(target.partition("?")[0])
            leads_to = (path.parent / target).resolve() if target else path
            if not leads_to.exists():
                yield f"{name}: there is no {link}"
            elif place and leads_to in found and urllib.parse.unquote(place) not in found[leads_to].places:
                yield f"{name}: nothing is at {link}"
    if not found:
        yield f"{folder}: no pages"


def main(arguments):
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    found = list(problems(pathlib.Path(arguments[0]).resolve()))
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
