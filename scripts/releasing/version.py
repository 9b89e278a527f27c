"""Version of the project, and the places that name it. tests/it/releases.rs checks these places."""

import re
import subprocess

from .failure import Failure

MANIFEST = "Cargo.toml"
# Each place has the version in a text of its own.
PLACES = {
    MANIFEST: '\nversion = "{}"\n',
    "integrations/scrapy/pyproject.toml": '\nversion = "{}"\n',
    "packaging/kubernetes.yaml": "image: urlseen:{}\n",
    "docs/guides/container.md": ("urlseen_{}_", "urlseen:{} "),
    "docs/guides/service.md": "urlseen_{}_",
}


def numbers(version):
    """Returns the three numbers of a version."""
    if not re.fullmatch(r"(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}", version):
        raise Failure(f"{version} is not the version of a release: give three numbers, as in 1.2.0")
    return [int(number) for number in version.split(".")]


def present(tree):
    """Returns the version in the manifest of the workspace."""
    return re.search(r'\nversion = "(.+)"\n', (tree / MANIFEST).read_text())[1]


def check_newer(version, than):
    if numbers(version) <= numbers(than):
        raise Failure(f"the version is {than} already, and {version} is not later")


def change(tree, old, new):
    """Writes a new version to all places, and to Cargo.lock."""
    for path, texts in PLACES.items():
        file = tree / path
        content = file.read_text()
        for text in [texts] if isinstance(texts, str) else texts:
            if text.format(old) not in content:
                raise Failure(f"{path} does not contain {text.format(old)!r}: mend PLACES")
            content = content.replace(text.format(old), text.format(new))
        file.write_text(content)
    subprocess.run(["cargo", "update", "--quiet", "--workspace", "--offline"], cwd=tree, check=True)
