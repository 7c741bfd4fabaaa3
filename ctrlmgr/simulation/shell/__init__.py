"""A small shell that computes the effects of `sh -c` without executing anything.

The modules `shell_lexer` and `script_syntax` parse a script. The module `shell_interpreter` runs the script,
`expansion` expands its words, and `redirections` changes its streams. The commands of the shell are in `builtins` and
in the tools (`plain_tools`, `text_tools`, `file_tools`, `network_tools`).
"""

from ctrlmgr.simulation.shell.script_result import Line, Run
from ctrlmgr.simulation.shell.shell_interpreter import run, run_command

__all__ = ["Line", "Run", "run", "run_command"]
