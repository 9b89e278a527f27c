"""What is measured: a module a section, each with `run(settings)`.

It returns a dictionary with `lines` and, where there is something to say about them, `facts`.
"""

from . import pipe

SECTIONS = {"pipe": pipe.run}
