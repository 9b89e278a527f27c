"""Git repository of the project, and a second working tree in which a release is made."""

import shutil
import subprocess

from .failure import Failure


class Repository:
    def __init__(self, root):
        self.root = root

    def git(self, *words, tree=None):
        """Runs git, and returns its standard output."""
        command = ["git", *words]
        done = subprocess.run(command, cwd=tree or self.root, stdout=subprocess.PIPE, text=True)
        if done.returncode != 0:
            raise Failure(f"git {words[0]} ended with status {done.returncode}")
        return done.stdout.strip()

    def check_clean(self):
        if changes := self.git("status", "--porcelain"):
            raise Failure(f"the tree has changes, commit or remove them first:\n{changes}")

    def check_has_no(self, tag):
        if self.git("tag", "--list", tag):
            raise Failure(f"the tag {tag} exists already")

    def second_tree(self, tree):
        """Checks out the present commit in another folder. Replaces what an earlier run left."""
        shutil.rmtree(tree, ignore_errors=True)
        self.git("worktree", "prune")
        self.git("worktree", "add", "--quiet", "--detach", str(tree), "HEAD")
        (tree / ".venv").symlink_to(self.root / ".venv")

    def commit(self, tree, message):
        """Commits everything in a second tree. Returns the id of the commit."""
        self.git("add", "--all", tree=tree)
        self.git("commit", "--quiet", "--message", message, tree=tree)
        return self.git("rev-parse", "HEAD", tree=tree)

    def take(self, commit, tag, message):
        """Moves the present branch forward to a commit, and tags it."""
        self.git("merge", "--quiet", "--ff-only", commit)
        self.git("tag", "--annotate", "--message", message, tag, commit)

    def remove(self, tree):
        self.git("worktree", "remove", "--force", str(tree))
