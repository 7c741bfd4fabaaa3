# Sourced by scripts/test, after packages.sh: where a Chromium is, for the tests of the page at /ui.

# Print the path of a Chromium that is there.
find_chromium() {
    for program in "${CTRLMGR_TEST_CHROMIUM:-}" "$(command -v chromium 2>/dev/null)" \
        "$(command -v chromium-browser 2>/dev/null)" "$(command -v google-chrome 2>/dev/null)"; do
        if [ -n "$program" ] && [ -x "$program" ]; then
            printf '%s\n' "$program"
            return 0
        fi
    done
    return 1
}

# Install the distribution's Chromium and print where it is.
get_chromium() {
    if can_install; then
        say "Chromium is missing: installing the distribution's package"
        install_packages chromium || true
    fi
    find_chromium && return 0
    fail "the tests need Chromium, and it could not be installed. Install it (Debian: apt install chromium) or set \
CTRLMGR_TEST_CHROMIUM to its path, and run this again."
}
