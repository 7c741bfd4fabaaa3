# Sourced by scripts/test and scripts/bench, after environment.sh: packages of the distribution.
#
# Guarantees: installs as root alone, and says so first; waits for a lock that another program holds; when it fails,
# what apt said is shown.

can_install() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }

# apt ARGUMENTS…: run apt-get. Another program that installs something at the moment is waited for, ten minutes at most.
apt() {
    said=$(mktemp)
    tries=0
    until DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get "$@" >"$said" 2>&1; do
        if ! grep -Eq 'Could not get lock|Unable to (lock|acquire)|is locked by another process' "$said" ||
            [ "$tries" -ge 300 ]; then
            say "apt-get $* failed:"
            tail -n 8 "$said" | sed 's/^/    /' >&2
            rm -f "$said"
            return 1
        fi
        [ "$tries" != 0 ] || say "another program holds apt's lock; waiting for it: $(grep -m 1 -i lock "$said")"
        tries=$((tries + 1))
        sleep 2
    done
    rm -f "$said"
}

# install_packages NAME…: the caller says before what is missing. Lists come first, a new machine has none.
install_packages() {
    apt -qq update || true
    apt -qq -y --no-install-recommends install "$@"
}

# unpack_package NAME FOLDER: fetch one and unpack it in FOLDER; nothing is installed, and nothing of it started.
unpack_package() {
    command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || return 1
    mkdir -p "$2"
    [ "$(id -u)" != 0 ] || apt -qq update || true
    (cd "$2" && rm -f ./*.deb && apt -qq download "$1" && dpkg-deb -x "$1"*.deb .)
}
