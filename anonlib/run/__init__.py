"""One release, in its order: scan, plan, anonymize, stage, verify, publish, record."""
