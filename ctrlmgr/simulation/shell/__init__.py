"""A small shell that computes the effects of `sh -c` without executing anything.

`tokens` and `syntax` parse a script, `interpreter` runs it, `expansion` expands its words, and `redirections` changes
its streams. `builtins` and the tools (`plain_tools`, `text_tools`, `file_tools`, `network_tools`) are its commands.
"""

from ctrlmgr.simulation.shell.interpreter import run, run_command
from ctrlmgr.simulation.shell.outcome import Line, Run

__all__ = ["Line", "Run", "run", "run_command"]
