# Sourced by the other scripts, from the project's root: finds a Python and makes .venv hold what a lock file says.
#
# Guarantees: needs a POSIX shell and Python 3.11 or newer, nothing else; touches only .venv; does nothing when .venv
# is up to date; says in plain words what it does and, if it cannot, what would help.

say() { printf '%s\n' "==> $*" >&2; }
fail() { printf '%s\n' "error: $*" >&2; exit 1; }

is_new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

find_python() {
    for candidate in python3.13 python3.12 python3.11 python3.14 python3 python; do
        if is_new_enough "$candidate"; then
            command -v "$candidate"
            return 0
        fi
    done
    return 1
}

# Some distributions ship venv in a package of its own, and without it ensurepip is missing. Then a pip outside of
# the environment can still install into it (pip --python); failing that, root can install the package.
make_venv() {
    python=$(find_python) || fail "ctrlmgr needs Python 3.11 or newer, and none of python3.14 … python3 on the PATH is. \
Install one (Debian, Ubuntu: apt install python3 python3-venv; macOS: brew install python) and run this again."
    say "making .venv with $("$python" -V 2>&1) ($python)"
    if "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        "$python" -m venv --clear .venv
    elif "$python" -m pip --version >/dev/null 2>&1 && "$python" -m venv --clear --without-pip .venv 2>/dev/null; then
        "$python" -m pip --python .venv/bin/python install --quiet --disable-pip-version-check pip
    elif [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        say "this Python has no venv module: installing the distribution's python3-venv"
        . scripts/packages.sh
        install_packages python3-venv
        "$python" -m venv --clear .venv
    else
        fail "$python has no venv module. Install it (Debian, Ubuntu: apt install python3-venv) and run this again."
    fi
}

# install_lock FILE: bring .venv to what FILE says, and ctrlmgr itself as an editable install.
# A stamp remembers the checksum of what was installed, so that the next run starts at once.
install_lock() {
    is_new_enough .venv/bin/python || make_venv
    stamp=.venv/.installed-$1
    wanted=$(cat "$1" pyproject.toml | cksum)
    [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ] && return 0
    say "installing the packages of $1 into .venv (once; a minute or so)"
    pip="env PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore .venv/bin/python -m pip install --quiet"
    $pip --require-hashes -r "$1" >&2 || fail "the packages of $1 could not be installed; pip says why above."
    $pip --no-deps --no-build-isolation -e . >&2 || fail "ctrlmgr itself could not be installed; pip says why above."
    printf '%s\n' "$wanted" >"$stamp"
}
