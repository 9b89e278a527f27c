"""Files of a release: packages, software bill of materials (SBOM), notes and checksums."""

import hashlib
import shutil
import subprocess
from pathlib import Path

CYCLONEDX = "cargo-cyclonedx@0.5.9"
# File that this tool writes for the program.
SBOM = "urlseen_bin.cdx.json"


class Files:
    """Folder that receives the files, built from a tree with the environment `env`."""

    def __init__(self, tree, folder, tools, env):
        self.tree, self.folder, self.tools, self.env = tree, folder, tools, env
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)

    def run(self, *command):
        """Runs a command in the tree, and returns its standard output."""
        command = [str(word) for word in command]
        print("$", *command, flush=True)
        done = subprocess.run(
            command, cwd=self.tree, env=self.env, check=True, stdout=subprocess.PIPE, text=True
        )
        return done.stdout.strip()

    def program(self):
        """Builds the program. Returns its path."""
        self.run("cargo", "build", "--release", "--locked", "--quiet")
        return Path(self.env["CARGO_TARGET_DIR"], "release/urlseen")

    def debian_package(self, program):
        return self.take(self.tree / self.run("scripts/package", program))

    def container_image(self, package):
        self.take(self.tree / self.run("scripts/container", package))

    def python_packages(self):
        """Builds a wheel and an sdist of each of the two Python packages."""
        self.run("scripts/checks/wheel", "release")
        python = self.tools / "python"
        packages = ["--no-deps", "--requirement", Path(__file__).with_name("requirements.txt")]
        self.run("python3", "-m", "venv", python)
        self.run(python / "bin/pip", "install", "--quiet", *packages)
        build = [python / "bin/python", "-m", "build", "--no-isolation"]
        self.run(*build, "--outdir", "target/wheels", "integrations/scrapy")
        for package in sorted((self.tree / "target/wheels").iterdir()):
            self.take(package)

    def sbom(self, version):
        """Writes the dependencies of the program in CycloneDX."""
        self.run("cargo", "install", "--locked", "--quiet", "--root", self.tools, CYCLONEDX)
        describe = ["--format", "json", "--spec-version", "1.5", "--describe", "binaries"]
        self.run(self.tools / "bin/cargo-cyclonedx", "cyclonedx", "--quiet", *describe)
        # The references between the parts need not contain the folder of the build.
        text = (self.tree / SBOM).read_text().replace(f"file://{self.tree}", "file://.")
        (self.folder / f"urlseen-{version}.cdx.json").write_text(text)

    def notes(self, entries):
        (self.folder / "notes.md").write_text(entries)

    def checksums(self):
        """Writes SHA256SUMS over all files, for `sha256sum --check`."""
        lines = [
            f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n"
            for file in sorted(self.folder.iterdir())
        ]
        (self.folder / "SHA256SUMS").write_text("".join(lines))

    def take(self, file):
        return Path(shutil.copy(file, self.folder))
