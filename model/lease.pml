/* lease.pml - claim / heartbeat / expire / reclaim / commit / resolve for ONE run row (job, period).
 *
 * What is modelled
 *  - The scheduler database is linearizable: every `atomic{}` block below is one transaction that
 *    holds the row lock from its check to its commit.
 *  - The lease clock is the DB clock only. Instead of numbers, process `clock` may expire the lease
 *    at ANY moment; together with free interleaving this covers every pause (SIGSTOP, GC, VM freeze)
 *    longer or shorter than the TTL.
 *  - The commit request travels over a network that may delay without bound, lose, reorder and
 *    DUPLICATE it; the reply may be lost (worker times out => outcome unknown).
 *  - A worker may crash at any step, and restart with empty memory. The claim reply may be lost.
 *
 * What is asserted (numbers are those of README.md's promises)
 *  I1  at most one accepted commit per run row
 *  I3  accepted commit carries the current token        (no zombie accept)
 *  I4  accepted commit happens under an unexpired lease (DB clock)
 *  I5  a heartbeat never turns an expired lease into a live one
 *  I6  every claim gets a token greater than any token ever granted for the row
 *  I9  an attempt reported "definitely not committed" is never accepted later
 *      and one reported "committed" was accepted
 *  I2  DONE is terminal (nobody leaves DONE)
 *
 * Mutants (compile with -D...): NOTOKEN NOLEASE NOBOTH RESURRECT NOBUMP CLIENTCHECK NAIVERESOLVE BLINDRECLAIM
 * -DONLY=n checks only invariant n (to see which guard protects which promise).
 */
#ifndef W
#define W 2                 /* workers */
#endif
#ifndef MAXTOK
#define MAXTOK 3            /* claims explored */
#endif
#define NT (MAXTOK+2)

#if !defined(ONLY)
#define ONLY 0
#endif
#define CHK(n,c)  if :: (ONLY == 0 || ONLY == n) -> assert(c) :: else -> skip fi

mtype = { PLANNED, CLAIMED, RUNNING, DONE };

/* ---- the database row ---- */
mtype st   = PLANNED;
byte  tok  = 0;             /* monotonic fencing token               */
bool  lease = false;        /* lease_until > db_now                   */
byte  res_tok = 0;          /* token recorded with the result         */

/* ---- network ---- */
bool  infl[NT];             /* commit(token) request in flight        */
bool  rep_ok[NT];           /* reply delivered: accepted              */
bool  rep_no[NT];           /* reply delivered: rejected              */

/* ---- ghosts ---- */
byte  commits = 0;
byte  maxgranted = 0;
bool  said_no[NT];
bool  said_yes[NT];

/* ---- fault budgets (only used to make the liveness run finite) ---- */
#ifdef LIVE
byte  bud_exp = 1; byte bud_crash = 1; byte bud_lost = 1;
byte  held = 0;             /* ghost: token held by a living worker */
#define CANEXP   (bud_exp>0)
#define CANCRASH (bud_crash>0)
#define CANLOSE  (bud_lost>0)
#define USEEXP   bud_exp--
#define USECRASH bud_crash--
#define USELOSE  bud_lost--
#else
#define CANEXP   true
#define CANCRASH true
#define CANLOSE  true
#define USEEXP   skip
#define USECRASH skip
#define USELOSE  skip
#endif

/* the DB clock */
active proctype clock() {
end_c:
  do
#ifdef LIVE
  /* a lease nobody renews always expires; one with a living holder expires early at most bud_exp times */
  :: atomic { lease && held != tok -> lease = false }
  :: atomic { lease && held == tok && CANEXP -> lease = false; USEEXP }
#else
  :: atomic { lease -> lease = false }
#endif
  od
}

/* the database executing commit requests that arrive from the network */
active proctype dbcommit() {
  byte t;
end_d:
  do
  :: atomic {
       /* pick any in-flight request */
       if
       :: infl[1] -> t = 1
       :: infl[2] -> t = 2
       :: infl[3] -> t = 3
#if MAXTOK > 3
       :: infl[4] -> t = 4
#endif
#if MAXTOK > 4
       :: infl[5] -> t = 5
#endif
#if MAXTOK > 5
       :: infl[6] -> t = 6
#endif
#if MAXTOK > 6
       :: infl[7] -> t = 7
#endif
       fi;
       /* network may keep a duplicate of the request */
#ifndef LIVE
       if :: infl[t] = false :: skip fi;
#else
       infl[t] = false;
#endif
       /* ---- the commit transaction ---- */
       if
#if defined(NOTOKEN)
       :: (st == RUNNING && lease) ->                 /* mutant: lease but no token check */
#elif defined(NOBOTH) || defined(CLIENTCHECK)
       :: (st == RUNNING || st == CLAIMED) ->         /* mutant: only a state check      */
#elif defined(NOLEASE)
       :: (st == RUNNING && tok == t) ->
#else
       :: (st == RUNNING && tok == t && lease) ->
#endif
            CHK(1, commits == 0);          /* I1 */
            CHK(3, t == tok);              /* I3 */
            CHK(4, lease);                 /* I4 */
            CHK(9, !said_no[t]);           /* I9 */
            commits++;
            st = DONE; res_tok = t;
            rep_ok[t] = true
       :: else ->
            /* idempotent answer for the same attempt, otherwise a definite refusal */
            if
            :: (st == DONE && res_tok == t) -> rep_ok[t] = true
            :: else -> rep_no[t] = true
            fi
       fi;
       t = 0
     }
  od
}

proctype worker() {
  byte my = 0; byte hb = 0;
again:
#ifdef LIVE
  atomic { if :: (my != 0 && held == my) -> held = 0 :: else -> skip fi; my = 0; hb = 0 };
#else
  atomic { my = 0; hb = 0 };
#endif
end_w:                       /* out of explored claims is a valid end, not a deadlock */
  do
  :: st == DONE -> break
  /* ---- claim or reclaim: one conditional UPDATE ---- */
  :: atomic {
       ((st == PLANNED) || ((st == CLAIMED || st == RUNNING) && !lease)) && tok < MAXTOK ->
#ifdef NOBUMP
         if :: st == PLANNED -> tok = tok + 1 :: else -> skip fi;
#else
         tok = tok + 1;
#endif
         CHK(6, tok > maxgranted);         /* I6 */
         CHK(2, st != DONE);               /* I2 */
         maxgranted = tok;
         st = CLAIMED; lease = true; my = tok
#ifdef LIVE
         ; held = my           /* TTL is assumed longer than an undisturbed claim round trip */
#endif
     };
     /* the reply to the claim can be lost: the worker never learns it owns the row */
     if
     :: skip
     :: atomic { CANLOSE -> USELOSE }; goto again
     fi;
     /* ---- start ---- */
     atomic {
       if
       :: (tok == my && lease && st == CLAIMED) -> st = RUNNING
       :: else -> goto again
       fi
     };
     /* ---- work: heartbeats, then commit, or crash ---- */
work:
     do
#if defined(LIVE) && !defined(NODEADLINE)
     :: atomic { hb < 2 -> hb++ ;          /* heartbeat; refused after max_runtime (hb budget) */
#else
     :: atomic {                           /* heartbeat */
#endif
          if
#ifdef RESURRECT
          :: (tok == my && (st == RUNNING)) ->
               CHK(5, lease);              /* I5: extending an expired lease is the bug */
               lease = true
#else
          :: (tok == my && lease && st == RUNNING) -> lease = true
#endif
          :: else -> goto again            /* lost it: stop the work */
          fi
        }
     :: atomic { CANCRASH -> USECRASH }; goto again   /* crash + restart, memory gone */
     :: break                              /* work finished */
     od;
#ifdef CLIENTCHECK
     /* mutant: check token and lease in one transaction, commit in another one */
     if :: (tok == my && lease) -> skip :: else -> goto again fi;
#endif
     infl[my] = true;                      /* send COMMIT */
     if
     :: rep_ok[my] -> said_yes[my] = true; CHK(9, res_tok == my && commits == 1); break
     :: rep_no[my] -> said_no[my] = true;  goto again
     :: atomic { CANLOSE -> USELOSE };     /* timeout: outcome unknown */
        if
#ifdef NAIVERESOLVE
        :: atomic {                        /* mutant: plain read-back */
             if
             :: (st == DONE && res_tok == my) -> said_yes[my] = true
             :: else -> said_no[my] = true
             fi
           }
#else
        :: atomic {                        /* resolve = read-back AND poison, one transaction */
             if
             :: (st == DONE && res_tok == my) -> said_yes[my] = true
             :: (tok == my && st != DONE) ->
                  /* give the row back under a fence: token is burnt, run is PLANNED again */
                  tok = tok + 1; maxgranted = tok;
                  lease = false; st = PLANNED;
                  said_no[my] = true
             :: else -> said_no[my] = true /* token already superseded: cannot commit any more */
             fi
           }
#endif
        fi;
        goto again
     :: atomic { CANCRASH -> USECRASH }; goto again
     fi
  od
}

#ifdef BLINDRECLAIM
/* mutant: reclaimer selects stale rows in one transaction and resets them by id in another */
active proctype reclaimer() {
end_r:
  do
  :: atomic { (st == CLAIMED || st == RUNNING) && !lease -> skip };
     /* gap: the owner may commit / a new owner may claim here */
     atomic { CHK(2, st != DONE); st = PLANNED; lease = false }
  od
}
#endif

init {
  atomic {
    run worker(); run worker();
#if W > 2
    run worker();
#endif
  }
}

#ifdef LIVE
/* NODEADLINE shows the hang a live heartbeat hides: a job that heartbeats for ever and never ends.
   With bounded faults and weak fairness the run is eventually DONE or out of the explored claims */
ltl live { <> (st == DONE) }
#endif
