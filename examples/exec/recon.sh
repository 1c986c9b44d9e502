#!/bin/sh
# Stands for the nightly work: books the day once in a ledger, by the fence of its run.
set -eu
echo "$MATINS_BIZ_DATE by run $MATINS_FENCE on $(hostname)" >>"${LEDGER:?name the ledger}"
echo "reconciled $MATINS_BIZ_DATE"
