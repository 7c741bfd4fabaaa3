# Sourced by scripts/test and scripts/bench, after packages.sh: where PostgreSQL's server programs are.
#
# Where PgBouncer is, too, which some tests put in front of it.
#
# The tests start a throw-away server of their own on a free port, so all that is needed is the programs; no server
# that runs already is touched, and none is left running.

has_postgres() { [ -x "$1/initdb" ] && [ -x "$1/pg_ctl" ] && "$1/postgres" -V >/dev/null 2>&1; }

# Print the directory that holds initdb, pg_ctl and postgres. Packages put it beside the PATH, one per version.
find_postgres() {
    for directory in "${CTRLMGR_TEST_POSTGRES_BIN:-}" \
        "$(dirname "$(command -v initdb 2>/dev/null)" 2>/dev/null)" \
        "$(pg_config --bindir 2>/dev/null)" \
        $(ls -d /usr/lib/postgresql/*/bin /usr/pgsql-*/bin /usr/local/opt/postgresql*/bin \
            /opt/homebrew/opt/postgresql*/bin 2>/dev/null | sort -rV) \
        .venv/postgres/*/pginstall/bin; do
        if [ -n "$directory" ] && has_postgres "$directory"; then
            (cd "$directory" && pwd)
            return 0
        fi
    done
    return 1
}

# Install PostgreSQL and print where: the distribution's package as root, else a wheel that carries the server.
get_postgres() {
    if can_install; then
        say "PostgreSQL is missing: installing the distribution's package (the tests run a server of their own from it)"
        install_package || say "the package could not be installed; trying a wheel that carries PostgreSQL"
        find_postgres && return 0
    fi
    say "PostgreSQL is missing: fetching a wheel that carries the server into .venv/postgres"
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes \
        --target .venv/postgres -r requirements-postgres.lock >&2 || true
    find_postgres && return 0
    fail "the tests need PostgreSQL's server programs (initdb, postgres, pg_ctl), and they could not be installed. \
Install PostgreSQL (Debian, Ubuntu: apt install postgresql; Fedora: dnf install postgresql-server; macOS: brew install \
postgresql) or set CTRLMGR_TEST_POSTGRES_BIN to their directory, and run this again."
}

# The drop-in keeps the package from creating and starting a database cluster on this machine.
install_package() {
    drop_in=/etc/postgresql-common/createcluster.d/ctrlmgr-tests.conf
    mkdir -p "$(dirname "$drop_in")" && echo "create_main_cluster = false" >"$drop_in"
    installed=0
    install_packages postgresql || installed=1
    rm -f "$drop_in"
    return "$installed"
}

# Print the path of a PgBouncer that runs.
find_pgbouncer() {
    for program in "${CTRLMGR_TEST_PGBOUNCER:-}" "$(command -v pgbouncer 2>/dev/null)" /usr/sbin/pgbouncer \
        .venv/pgbouncer/usr/sbin/pgbouncer; do
        if [ -n "$program" ] && [ -x "$program" ] && "$program" --version >/dev/null 2>&1; then
            (cd "$(dirname "$program")" && printf '%s/pgbouncer\n' "$(pwd)")
            return 0
        fi
    done
    return 1
}

# Fetch PgBouncer and print where it is: the distribution's package, unpacked beside the environment so that nothing is
# started, with the libraries it needs installed.
get_pgbouncer() {
    say "PgBouncer is missing: fetching the distribution's package into .venv/pgbouncer"
    ! can_install || install_packages libevent-2.1-7 libc-ares2 || true
    unpack_package pgbouncer .venv/pgbouncer || true
    find_pgbouncer && return 0
    fail "the tests need PgBouncer, and it could not be fetched. Install it (Debian, Ubuntu: apt install pgbouncer; \
Fedora: dnf install pgbouncer; macOS: brew install pgbouncer) or set CTRLMGR_TEST_PGBOUNCER to its path, and run this \
again."
}
