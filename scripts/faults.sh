# Sourced by scripts/test, after packages.sh: what the fault tests use beside PostgreSQL. Without it those tests that
# need it are skipped, and say so.

# libfaketime, which turns the clock of one process: installed, or unpacked beside the environment.
has_faketime() { [ -n "$(find /usr/lib /usr/lib64 .venv/faketime -name libfaketimeMT.so.1 2>/dev/null | head -n 1)" ]; }

get_fault_tools() {
    command -v apt-get >/dev/null || return 0
    if ! has_faketime; then
        say "libfaketime is missing: unpacking the distribution's package into .venv/faketime"
        unpack_package libfaketime .venv/faketime ||
            say "it could not be had: tests that turn clocks are skipped"
    fi
    # Network namespaces are for root alone, and so are these.
    if can_install && ! { command -v ip && command -v ss; } >/dev/null; then
        say "ip and ss are missing: installing the distribution's package iproute2"
        install_packages iproute2 ||
            say "it could not be had: tests that cut networks are skipped"
    fi
}
