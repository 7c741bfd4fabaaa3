"""A small shell: what `sh -c` would do, worked out at once instead of being executed.

In the order a script meets them: `tokens` and `syntax` read it, `interpreter` runs it, `expansion` makes of its words
what they stand for, `builtins` and the tools (`plain_tools`, `text_tools`, `file_tools`) are what it can call.
"""

from ctrlmgr.simulation.shell.interpreter import run, run_command
from ctrlmgr.simulation.shell.outcome import Line, Run

__all__ = ["Line", "Run", "run", "run_command"]
