"""A small shell: it works out at once what `sh -c` would do, and executes nothing.

`tokens` and `syntax` read a script, `interpreter` runs it, `expansion` expands its words, and `redirections` changes
its streams. `builtins` and the tools (`plain_tools`, `text_tools`, `file_tools`) are the commands that it can call.
"""

from ctrlmgr.simulation.shell.interpreter import run, run_command
from ctrlmgr.simulation.shell.outcome import Line, Run

__all__ = ["Line", "Run", "run", "run_command"]
