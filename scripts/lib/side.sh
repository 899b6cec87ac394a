# shellcheck shell=bash
# Sourced after setup.sh by scripts that need programs outside of anonlib's environment:
#   anonlib_side NAME    makes .venv/NAME from scripts/lock/NAME.txt, unless it is up to date

anonlib_side() {
    local name=$1 env=$anonlib_venv/$1 lock=$anonlib_root/scripts/lock/$1.txt wanted
    wanted=$(anonlib_sha256 "$lock")
    [ -f "$env/anonlib-stamp" ] && [ "$(<"$env/anonlib-stamp")" = "$wanted" ] && return
    anonlib_say "installing the locked packages of $name into .venv/$name"
    anonlib_find_uv
    rm -rf -- "$env"
    anonlib_run "making .venv/$name" "$anonlib_uv" venv --quiet --no-project \
        --python "$anonlib_python" "$env"
    anonlib_run "installing the locked packages of $name" anonlib_sync "$env/bin/python" "$lock"
    printf '%s\n' "$wanted" >"$env/anonlib-stamp"
}
