# anonlib, Java, Spark and Delta's jars, for one machine: scripts/image builds it.
FROM python:3.11-slim-bookworm AS java
# hadolint ignore=DL3008 # Debian keeps no old versions, so a pinned one could soon not be installed.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless \
    && rm -rf /var/lib/apt/lists/*
ENV PATH=/opt/anonlib/bin:$PATH

FROM java AS build
# The base URL of a Maven repository, where Maven Central can't be reached.
ARG ANONLIB_MAVEN_URL
WORKDIR /src
COPY scripts/lock/image.txt ./
RUN python -m venv /opt/anonlib \
    && pip install --no-cache-dir --no-deps --require-hashes --requirement image.txt
COPY pyproject.toml README.md LICENSE ./
COPY anonlib ./anonlib
RUN pip install --no-cache-dir --no-deps --no-build-isolation . \
    && python -m anonlib.spark.jars

FROM java
# Files of mounted folders are written as this user.
ARG UID=1000
RUN useradd --create-home --uid "$UID" anonlib && install --directory --owner anonlib /work
COPY --from=build /opt/anonlib /opt/anonlib
USER $UID
# Kernels are compiled once for all containers, by the user who runs them: nobody else's code is loaded.
RUN python -c "import anonlib, numpy; [anonlib.cells(numpy.arange(64.0).reshape(-1, 2) % 7, kernel=kernel, k=3) for kernel in ('mdav', 'mondrian')]"
WORKDIR /work
ENTRYPOINT ["anonlib"]
CMD ["--help"]
