# Every recipe only forwards to `cargo xtask`, which works without `just` as well.

# List the recipes.
default:
    @just --list

# Build everything, replay a strategy over sample data, show the report.
demo *arguments:
    cargo xtask demo {{arguments}}

# Put DuckDB's library into .duckdb/; `test` does so by itself.
setup:
    cargo xtask setup

# Check everything: format, guests, lints, documentation, tests, schemas.
test *arguments:
    cargo xtask test {{arguments}}

# Build the guests and turn them into components.
guests *arguments:
    cargo xtask guests {{arguments}}

# Run a benchmark; its results are JSON lines.
bench name *arguments:
    cargo xtask bench {{name}} {{arguments}}

# Make what users install without a compiler, into dist/; `--check` tries it in empty roots.
dist *arguments:
    cargo xtask dist {{arguments}}

# Run the seeded tests with all their seeds, and try the packages.
soak:
    cargo xtask soak

# Write the generated schemas and pages anew.
schemas:
    cargo xtask schemas

# Check the pages in docs/ and make a book of them.
docs:
    cargo xtask docs

# Say what is there, what is missing and what to do about it.
doctor:
    cargo xtask doctor
