"""`anonlib release --example`: a table of invented people and its config, in a new folder."""

from importlib.resources import files
from pathlib import Path

from anonlib.errors import InputError
from anonlib.progress import Progress

#: The new folder, in the working directory. Its config and its table lie in it.
FOLDER = Path("anonlib-example")
#: The config, as the package has it.
TEMPLATE = files("anonlib.cli") / "example.yaml"
CONFIG, TABLE = FOLDER / "people.yaml", FOLDER / "people.csv"
N_ROWS = 5_000
#: A short run: the JVM's second compiler would take more time than it saves.
SETTINGS = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseParallelGC"}


def write_example(progress: Progress) -> str:
    """Writes the table and the config to a new folder; both are the same at every call.

    Raises InputError if the folder is there, or can't be written, or if Spark can't start: nothing
    is written then.

    Returns:
        The path of the config.
    """
    if FOLDER.exists():
        raise InputError(
            f"{FOLDER} is there already, and is left as it is; run this in another folder, or go "
            f"on with: anonlib release {CONFIG}"
        )
    from anonlib.source.look import invent_people

    progress.note("Spark starts; the first run also fetches jars, and compiles what it runs")
    people = invent_people(N_ROWS, SETTINGS, progress).to_pandas()
    try:
        FOLDER.mkdir()
        people.to_csv(TABLE, index=False)
        CONFIG.write_text(TEMPLATE.read_text("utf-8"), "utf-8")
    except OSError as error:
        raise InputError(f"{FOLDER}: can't be written ({error.strerror or 'I/O error'})") from None
    progress.note(f"written: {TABLE}, {N_ROWS:,} invented people, and its config, {CONFIG}")
    return str(CONFIG)


def print_next_steps() -> None:
    """Prints what the example was, and what to do with a table of one's own."""
    from rich.text import Text

    from anonlib.cli.show.parts import print_places
    from anonlib.cli.show.summaries import console, program

    to = console()
    to.print()
    to.print(
        Text(
            f"This was an example, of invented people. {TABLE} is the table as it was; {CONFIG} "
            "says what was done to it; the report shows what came out, and what it is worth."
        )
    )
    to.print()
    print_places(
        to,
        [
            ("your table", f"{program()} init TABLE.csv --out my.yaml"),
            ("then", f"{program()} check my.yaml"),
            ("and", f"{program()} release my.yaml"),
        ],
    )
