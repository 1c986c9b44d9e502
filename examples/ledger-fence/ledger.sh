#!/bin/sh
# Makes the ledger: its own table, and the fence's tables as `matins fence sql` prints them.
set -eu
sqlite3 -batch -bail "${LEDGER:-ledger.db}" 'CREATE TABLE IF NOT EXISTS booking (period TEXT, step INTEGER, fence INTEGER)'
"${MATINS:-matins}" fence sql --dialect sqlite |
  sed -n '/^CREATE TABLE/,/;$/p' | sqlite3 -batch -bail "${LEDGER:-ledger.db}"
