"""One run, in its order.

    scan            one reading of the source: counts, categories, a sample
    feasible        what the figures of a scan rule out
    past            what earlier runs left: ledger, backlog, the rows that a batch is added to
    controller_plan the data controllers: who is kept, merged, suppressed
    plan            what a plan is; block_plan deals rows to blocks, tuple_plan searches tuples
    staging         the worker's task, and the released rows written to staging
    suppression     which staged rows are released
    staged_audit    the audit, and whether rows add up
    evaluate        what measures see of an audited_release, or a published one; their table
    publish         the commit; purge removes what it replaced
    records         the public manifest and the private record
    endings         runs that were published before, or wait
    run_table       the table of runs, with account; events go to OpenLineage
    steps           all of these together

`ledger` and `backlog` are private tables of their own; `result` is what a verb returns.
"""
