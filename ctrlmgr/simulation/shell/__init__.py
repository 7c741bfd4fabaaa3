"""A small shell, which computes the effects of `sh -c` without executing anything.

`shell_lexer` and `script_syntax` parse a script, `shell_interpreter` runs it, `expansion` expands its words, and
`redirections` changes its streams. `builtins` and the tools (`plain_tools`, `text_tools`, `file_tools`,
`network_tools`) are the shell's commands.
"""

from ctrlmgr.simulation.shell.script_result import Line, Run
from ctrlmgr.simulation.shell.shell_interpreter import run, run_command

__all__ = ["Line", "Run", "run", "run_command"]
