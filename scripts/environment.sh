# Sourced by the other scripts, from the project's root: finds a Python and makes .venv hold what a lock file says.
#
# Guarantees: needs a POSIX shell and Python 3.11 or newer, nothing else; touches only .venv; does nothing when .venv
# is up to date; says in plain words what it does and, if it cannot, what would help.

say() { printf '%s\n' "==> $*" >&2; }
fail() { printf '%s\n' "error: $*" >&2; exit 1; }

is_new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

# Prints the microseconds of processor time that ten thousand calls take, as a server makes them; fails on a Python that
# is too old or not CPython, or, asked for `venv`, on one that cannot make an environment by itself.
rate='
import sys, time
if sys.version_info < (3, 11) or sys.implementation.name != "cpython": sys.exit(1)
if sys.argv[1:] == ["venv"]: import ensurepip, venv
class Thing:
    def __init__(self, name): self.fields = {"name": name}
    def get(self, name): return self.fields.get(name, 0)
def taken():
    began = time.process_time()
    for number in range(10_000): isinstance(Thing(number).get("name"), int)
    return time.process_time() - began
print(round(1e6 * min(taken() for _ in range(9))))
'

# find_python [venv]: print the quickest Python on the PATH, of those that can make an environment if asked for `venv`.
# One that was compiled without optimization, as version managers do unless told otherwise, takes half as long again for
# all that it does. A newer one stays preferred until another is quicker by more than a timing errs; each is timed twice,
# a second or two apart, since a machine that others share may be slow for as long as one takes.
find_python() {
    (time_pythons "$@"; time_pythons "$@") | awk '
        { time = $1; sub(/^[0-9]+ /, "") }
        !($0 in least) { names[++count] = $0; least[$0] = time }
        time < least[$0] { least[$0] = time }
        END {
            for (number = 1; number <= count; number++)
                if (number == 1 || least[names[number]] < 0.85 * least[found]) found = names[number]
            if (!count) exit 1
            print found
        }'
}

time_pythons() {
    (
        IFS=:
        for name in python3.13 python3.12 python3.11 python3.14 python3 python; do
            for folder in $PATH; do
                [ -x "$folder/$name" ] || continue
                time=$("$folder/$name" -c "$rate" "$@" 2>/dev/null) || continue
                printf '%s %s\n' "$time" "$folder/$name"
            done
        done
    )
}

# Some distributions ship venv in a package of its own, and without it ensurepip is missing. Then a pip outside of
# the environment can still install into it (pip --python); failing that, root can install the package.
make_venv() {
    python=$(find_python venv || find_python) || fail "ctrlmgr needs Python 3.11 or newer, and none of python3.14 … python3 on the PATH is. \
Install one (Debian, Ubuntu: apt install python3 python3-venv; macOS: brew install python) and run this again."
    say "making .venv with $("$python" -V 2>&1) ($python), the quickest on the PATH"
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
