"""The engine room: sessions, jars, storage, Delta files, leases, and the errors of Spark."""
