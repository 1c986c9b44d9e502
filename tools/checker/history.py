"""What a history is. One JSON object a line, in any order.

Times are seconds of the store's clock ("db").  A `period` is named by the time it is due; `gen` is its generation (1 when
absent); fences ("token") are numbers or decimal strings.  A history merges three independent witnesses, and the checker
compares them:

W1 what nodes and runs saw
     commit {job period token res: ok|refused|info}, resolve {job period token ans: yes|no}
W2 the store's journal: jr {job period gen ver op db ...}, one a accepted change, written in its transaction
     plan                       backfill, manual
     again                      a FAILED period has new attempts, from a later trigger
     dispatch unhold judge      held by a node, given back, judged anew; change nothing here
     putoff cancel              looked at again later, asked to end; change nothing here either
     claim                      token nonce lease_until
     start hb ckpt commit fail  token nonce
       start                    resume: the checkpoint it was given
       hb                       lease_until
       ckpt                     n
       fail                     final: this trigger's attempts are used up (FAILED; a later trigger may claim again);
                                held: FAILED until somebody reopens or skips it; neither: PLANNED, will be retried
       cancelled: (also of a reclaim) a person had asked for its end
     reclaim                    the lease ended: the attempt is lost, the period PLANNED again.  That is no failure, save
                                held (recovery: hold) or final (after max_lost losses).  token, if it burnt one
     burn                       token; a resolved `no`, or a person, took the run back while its lease lived (held: as above).
                                lost: the attempt counts as lost all the same
     skip                       reason, by: policy|person
   reopened {job period gen by: person|delete|rerun old_state old_token lease_end db}: generation `gen` begins.  State,
     checkpoint and "one commit" start afresh; fences go on rising; no claim before lease_end (null: no lease)
W3 what is there at the end
     effect {job period step db}, final {job period gen state token result_token}

and  job_def {job deadline grace audit_cadence audit_grace policy retention, and a schedule as targets.py reads it;
       optional: ordered steps same_tx blind max_periods max_parallel max_lost recovery race
       claim_starts: the journal has no `start` of its own, a claim is one},
     clock {db}: the clock went back, and the store stands still at this instant, its mark, until a person or its steadiness goes on,
     limit (limits.py), gap {job from to}, miss {job period db}, beat {who db}, alarm {about db}, cut {db audit_every audit2_every}

Where `cut` says `"audit": false` there was no audit: I13 is not judged, and a period that was never settled, nor run, in
time for the audit that there was not, breaks I14.
"""
import json
from collections import defaultdict

INF = float('inf')
LIVE = ('CLAIMED', 'RUNNING')
# Phases that a row may show as one status.
SAME = {'CLAIMED': 'RUNNING', 'DISPATCHED': 'PLANNED'}


def status(state):
    return SAME.get(state, state)


def same_status(row, journal, held):
    """What a row says, and what its journal comes to. A trigger makes a FAILED period that is not held PLANNED again; that
    is no change of hands, and no entry."""
    return status(row) == status(journal) or (row, journal, bool(held)) == ('PLANNED', 'FAILED', False)


def read(path):
    with open(path, encoding='utf-8') as lines:
        return [json.loads(line) for line in lines if line.strip()]


def by_type(events):
    """-> {type: [event]}, fences as numbers."""
    sorted_out = defaultdict(list)
    for event in events:
        sorted_out[event['type']].append({
            key: int(value) if key.endswith('token') and isinstance(value, str) else value
            for key, value in event.items()})
    return sorted_out
