# Sourced by scripts/test, after packages.sh: where a kubectl is. Any since 1.20 will do; the newest one found is used.

# Print the path of a kubectl that runs.
find_kubectl() {
    for program in "${CTRLMGR_TEST_KUBECTL:-}" "$(command -v kubectl 2>/dev/null)" .venv/kubectl/usr/bin/kubectl; do
        if [ -n "$program" ] && [ -x "$program" ] && "$program" version --client >/dev/null 2>&1; then
            (cd "$(dirname "$program")" && printf '%s/kubectl\n' "$(pwd)")
            return 0
        fi
    done
    return 1
}

# Fetch kubectl and print where it is: the distribution's package, unpacked beside the environment and not installed,
# else the Kubernetes project's own build.
get_kubectl() {
    say "kubectl is missing: fetching it into .venv/kubectl"
    mkdir -p .venv/kubectl/usr/bin
    unpack_package kubernetes-client .venv/kubectl || say "the distribution has no package of it that can be had"
    find_kubectl && return 0
    download_kubectl || true
    find_kubectl && return 0
    fail "the tests need kubectl, and it could not be fetched. Install it (https://kubernetes.io/docs/tasks/tools) or \
set CTRLMGR_TEST_KUBECTL to its path, and run this again."
}

download_kubectl() {
    command -v curl >/dev/null || return 1
    case "$(uname -m)" in x86_64) machine=amd64 ;; aarch64 | arm64) machine=arm64 ;; *) return 1 ;; esac
    system=$(uname -s | tr '[:upper:]' '[:lower:]')
    build=https://dl.k8s.io/release/v1.36.2/bin/$system/$machine/kubectl
    curl -fsSL --max-time 120 -o .venv/kubectl/usr/bin/kubectl "$build" &&
        printf '%s  .venv/kubectl/usr/bin/kubectl\n' "$(curl -fsSL --max-time 30 "$build.sha256")" | sha256sum -c --quiet - &&
        chmod +x .venv/kubectl/usr/bin/kubectl
}
