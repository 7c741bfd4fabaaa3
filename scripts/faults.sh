# Sourced by scripts/test, after environment.sh: what the fault tests use beside PostgreSQL. Without it those tests that
# need it are skipped, and say so.

# libfaketime, which turns the clock of one process: installed, or unpacked beside the environment.
has_faketime() { [ -n "$(find /usr/lib /usr/lib64 .venv/faketime -name libfaketimeMT.so.1 2>/dev/null | head -n 1)" ]; }

get_fault_tools() {
    command -v apt-get >/dev/null || return 0
    if ! has_faketime; then
        say "libfaketime is missing: unpacking the distribution's package into .venv/faketime"
        mkdir -p .venv/faketime
        [ "$(id -u)" != 0 ] || apt-get update -qq >/dev/null 2>&1 || true
        (cd .venv/faketime && apt-get download -qq libfaketime >/dev/null 2>&1 && dpkg-deb -x libfaketime*.deb .) ||
            say "it could not be had: tests that turn clocks are skipped"
    fi
    # Network namespaces are for root alone, and so are these.
    if [ "$(id -u)" = 0 ] && ! { command -v ip && command -v ss; } >/dev/null; then
        say "ip and ss are missing: installing the distribution's package iproute2"
        DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends iproute2 >/dev/null ||
            say "it could not be had: tests that cut networks are skipped"
    fi
}
