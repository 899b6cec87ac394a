"""What several measures of risk say of their figures."""

ROWS = (
    "rows are counted, since persons can't be told apart any more; where one has several in a "
    "class, the risk is larger"
)
