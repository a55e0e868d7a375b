#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The documentation as a site: it is made, it has what it should, and every link in it, anchors included, leads somewhere.

usage: site.py ROOT BUILD
"""
import os
import subprocess
import sys
import tempfile
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

EXPECTED = {
    "index.html": "scripts/demo",
    "java/docs/first-message.html": "import xxdev.Device;",
    "java/docs/tuning.html": "<table",
    "reference.html": "ibvrun(1)",
    "man/ibvrun.1.html": "--hosts",
    "man/ibvx.3.html": "ibvx_open",
    "api/mpi/Comm.html": "Sendrecv",
    "api/xxdev/Device.html": "init",
}


class Page(HTMLParser):
    """Its links, and the names that links can end at."""

    def __init__(self, path):
        super().__init__(convert_charrefs=True)
        self.links, self.names = [], set()
        with open(path, encoding="utf-8") as f:
            self.text = f.read()
        self.feed(self.text)

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name == "id" or (name == "name" and tag == "a"):
                self.names.add(value)
            elif name in ("href", "src") and value:
                self.links.append(value)


def broken(site):
    """(page, link) of each that leads nowhere in the site."""
    pages, found = {}, []
    for top, _, files in os.walk(site):
        for file in files:
            if file.endswith(".html"):
                path = os.path.join(top, file)
                pages[path] = Page(path)
    for path, page in sorted(pages.items()):
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme in ("http", "https", "mailto", "javascript", "data") or parts.netloc:
                continue
            target = os.path.normpath(os.path.join(os.path.dirname(path), unquote(parts.path))) if parts.path else path
            if parts.path.startswith("/"):  # the page for an address that does not exist
                target = os.path.join(site, unquote(parts.path).lstrip("/"))
            if os.path.isdir(target):
                target = os.path.join(target, "index.html")
            anchor = unquote(parts.fragment)
            if not os.path.exists(target) or (anchor and target in pages and anchor not in pages[target].names):
                found.append((os.path.relpath(path, site), link))
    return found, len(pages)


def main():
    root, build = sys.argv[1:]
    command = [os.path.join(root, "scripts", "packaging", "site"), "--build", build]
    with tempfile.TemporaryDirectory(prefix="ibvdev-site-test-") as folder:
        site = os.path.join(folder, "site")
        for _ in range(2):  # the second time in place of the first
            subprocess.run(command + [site], check=True)
        for name, text in EXPECTED.items():
            with open(os.path.join(site, name), encoding="utf-8") as f:
                assert text in f.read(), "%s: lacks %r" % (name, text)
        found, count = broken(site)
        assert count > 60, "only %d pages" % count
        assert not found, "links that lead nowhere:\n" + "\n".join("%s: %s" % pair for pair in found)
        # A folder that is not ours stays, and what is not built is missed.
        done = subprocess.run(command + [folder], stderr=subprocess.PIPE, text=True)
        assert done.returncode == 1 and "no site of ours" in done.stderr, done.stderr
        done = subprocess.run(command[:2] + [folder, os.path.join(folder, "new")], stderr=subprocess.PIPE, text=True)
        assert done.returncode == 1 and "build first" in done.stderr, done.stderr
        print("%d pages" % count)


main()
