"""One run, in its order. `steps` is all of these together.

The source
    scan             one reading of the source: counts, ranges, categories, a sample
    sample           the rows that come first by a seeded hash
    column_values    distinct values of columns, by one pass
    categories       these values in order, with Spark's hashes
    content          the content gate
    small_table      all of this of a table that is its own sample
    row_facts        what is found of rows, beside the figures of columns
    feasible         what the figures of a scan rule out
    operator_limits  what the operator of an installation requires of every config
    obstacles        what else stands in the way: a key, a place, an earlier release
    check            the result of a check
    source_sample    a sample in memory, to try settings on

Earlier runs
    past             the rows that a batch is added to, and the books: ledger and backlog
    ledger           the persons of earlier runs, as keyed tokens
    backlog          encrypted rows that wait for the next batch
    waiting_rows     these rows, held against the source and each other
    promise          what a release promises, and whether a later one keeps it
    published_audit  what need not be read of the published rows
    history          the versions of the table, by Delta's log
    log_actions      what commits did with files
    manifest_reading the manifest of a published table

Released rows
    controller_plan  the data controllers: who is kept, merged, suppressed
    plan             what a plan is
    block_plan       deals rows to blocks, by a tree on the sample
    tuple_plan       searches the distinct tuples
    leaves           sends rows to leaves, and counts these
    staging          the worker's task, and the released rows as files
    data_files       how these are written without a commit
    suppression      which staged rows are released

What is judged
    staged_audit     the audit before the commit, and whether rows add up
    audited_release  what a run holds when that has passed
    run_case         the release and its source, as measures see them
    evaluate         the measures of a published table
    shortfalls       what a release promised and an audit was not asked
    confirmation     what a released table confirms of its certificate
    testimony        what Spark counts for that

The commit
    publish          one Delta commit, checked before it is visible
    purge            removes what it replaced
    old_version      what is left of a replaced version
    completion       what a run owes once it is committed
    endings          runs that were published before, or wait

Notes
    result           what a verb returns
    records          the public manifest and the private record
    manifest_persons what the manifest says of persons
    source_summary   what the record says of the source
    dictionary       the data dictionary for those who get the table
    account          a run's row: who is responsible, and how it ended
    run_table        the private table of runs
    figure_table     the private table of what measures found
    events           OpenLineage's events of runs and stages
"""
