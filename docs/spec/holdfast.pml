/*
 * The write protocol of Holdfast, for the model checker SPIN: lease, stage, settle, lanes and lost hints.
 * README.md beside this file says what is checked, what is left out, and which code each step stands for.
 *
 * Three workers, two tasks. Every d_step is one database transaction. Between two of them anything may happen: leases
 * expire under workers that go on, workers die, hints get lost or arrive twice, answers to COMMIT get lost.
 */

#ifndef WORKERS
#define WORKERS 3               /* 2 or 3 */
#endif
#define TASKS 2

#ifndef MAX_CRASHES
#define MAX_CRASHES 2           /* max_attempts */
#endif
#ifndef MAX_RETRIES
#define MAX_RETRIES 1           /* of the one failure class that is modelled */
#endif
#ifndef CREDITS
#define CREDITS 2               /* each run costs 1 */
#endif

#ifdef TWO_LANES
#define lane(t) (t)
#else
#define lane(t) 0
#endif

#define ABSENT 0                /* status */
#define PENDING 1
#define RUNNING 2
#define SUCCEEDED 3
#define FAILED 4

#define ACCEPTED 0              /* stage */
#define COMMITTED 1
#define PROJECTED 2

/* Lease tokens. A worker here is one slot, which has one task at a time: its number in the row is the token of the
   claim that it works on. The token of a claim that nobody works on any more is nobody's. */
#define NONE WORKERS
#define NOBODYS (WORKERS + 1)

/* The rows. */
typedef Task {
  unsigned status : 3;
  unsigned stage : 2;
  unsigned token : 3;           /* lease_token */
  unsigned crashes : 2;
  unsigned spent : 2;
  unsigned seq : 2;             /* lane_seq */
  bit head;
  bit expired                   /* lease_until <= the database's clock */
};
Task task[TASKS];
byte next_seq[TASKS];           /* lanes.next_seq */
byte available = CREDITS;       /* credit_accounts */
byte held;
bit key[TASKS];                 /* idempotency_keys */

bit hint[TASKS];                /* NATS: one hint of the task, or several, are on their way */
#ifdef BLIND_RESCUE
bit seen[TASKS];
#endif
bit busy[WORKERS];              /* slots with work; the lowest free one works next, they are all the same */

/* What the properties speak of. No step looks at it. */
typedef Ghost {
  unsigned holder : 2;          /* the slot that claimed last and was not relieved */
  unsigned records : 2;         /* how often the records were written */
  unsigned holds : 2;
  unsigned settles : 2;
  unsigned releases : 2
};
Ghost ghost[TASKS];
byte landed[TASKS];             /* by lane: the lane_seq of the last canonical commit */

#ifdef LIVENESS
/* A task ends if only so many times a worker dies, loses a lease that it works on, gives one back or misses an answer,
   or a hint is lost. */
#ifndef FAULTS
#define FAULTS 3
#endif
#define NO_CANCEL               /* fairness would make the callers cancel whatever waits */
byte faults;
#define may_fail (faults < FAULTS)
#define fail_once faults++
ltl ends { [] (key[0] -> <> (task[0].status == SUCCEEDED || task[0].status == FAILED)) }
#else
#define may_fail true
#define fail_once skip
#endif

/* The predicates of the statements. */
#ifdef NO_LANE_CHECK
#define ready(t) true
#else
#define ready(t) (task[t].head || task[t].stage != ACCEPTED)
#endif
#define budget(t) (task[t].stage != ACCEPTED || task[t].crashes < MAX_CRASHES)
#define waits(t) (task[t].status == PENDING && ready(t) && budget(t))
#define expired(t) (task[t].status == RUNNING && task[t].expired)
#define takable(t) (waits(t) || expired(t) && budget(t))
#define open(t) (task[t].status == PENDING || task[t].status == RUNNING)
#define ended(t) (task[t].status == SUCCEEDED || task[t].status == FAILED)
#define free(w) (!busy[w] && (w < 1 || busy[0]) && (w < 2 || busy[1]))

#ifdef NO_FENCE
#define fence(t, w, from) (task[t].status != ABSENT)
#else
#ifdef NO_TOKEN
#define fence(t, w, from) (task[t].status == RUNNING && task[t].stage == from)
#else
#ifdef NO_STAGE
#define fence(t, w, from) (task[t].status == RUNNING && task[t].token == w)
#else
#define fence(t, w, from) (task[t].status == RUNNING && task[t].token == w && task[t].stage == from)
#endif
#endif
#endif

hidden byte best;

#define whole(t) \
  assert(ghost[t].records <= 1);                                /* records at most once */ \
  assert(ghost[t].holds == key[t]);                             /* one hold for each key */ \
  assert(ghost[t].settles + ghost[t].releases <= 1);            /* one close, never settle and release */ \
  assert(ghost[t].settles == (task[t].status == SUCCEEDED));    /* in the transaction of the outcome */ \
  assert(ghost[t].releases == (task[t].status == FAILED)); \
  assert(task[t].status != FAILED || ghost[t].records == 0);    /* failed: no records */ \
  assert(task[t].status != SUCCEEDED || ghost[t].records == 1)

/* Every step that writes ends with this: what holds after each of them holds always. */
inline check() {
  whole(0);
  whole(1);
  assert(!(task[0].head && task[1].head && lane(0) == lane(1)));          /* one head in a lane */
  assert(held == open(0) + open(1));
  assert(available + held + ghost[0].settles + ghost[1].settles == CREDITS)
}

/* A write by a worker: a stale holder writes nothing. */
#define mine(t) assert(ghost[t].holder == me)

/* The lowest waiting lane_seq becomes head if the lane has none. */
inline pass_head(l) {
#ifndef NO_PASS
  best = TASKS;
  if
  :: (lane(0) == l && task[0].head) || (lane(1) == l && task[1].head) -> skip
  :: else ->
     if :: lane(0) == l && open(0) && task[0].stage == ACCEPTED -> best = 0 :: else fi;
     if
     :: lane(1) == l && open(1) && task[1].stage == ACCEPTED && (best == TASKS || task[1].seq < task[0].seq) -> best = 1
     :: else
     fi;
     if :: best < TASKS -> task[best].head = 1 :: else fi
  fi;
  best = 0
#else
  skip
#endif
}

inline unlease(t) {
  task[t].token = NONE;
  task[t].expired = 0;
  ghost[t].holder = NONE
}

inline uncount(t) {
  if :: task[t].crashes > 0 -> task[t].crashes-- :: else fi
}

/* Failed: the hold is released and the lane goes on. */
inline release(t) {
  task[t].status = FAILED;
  task[t].head = 0;
  task[t].crashes = 0; task[t].spent = 0;       /* nobody looks at them again */
  ghost[t].releases++;
  held--;
  available++;
  unlease(t);
  pass_head(lane(t));
  check()
}

/* Callers send their commands, as often as they like, and may cancel them. */
inline accept(t) {
#ifdef NO_KEY
  available > 0 ->
#else
  !key[t] && available > 0 ->                   /* otherwise a replay or a 402, which change nothing */
#endif
  available--; held++; ghost[t].holds++;
  key[t] = 1;
  task[t].status = PENDING;
  task[t].seq = next_seq[lane(t)];
  next_seq[lane(t)]++;
  task[t].head = !(lane(0) == lane(1) && task[1 - t].head);
  hint[t] = task[t].head;                       /* published after the commit; NATS may lose it at once */
  check()
}

proctype callers() {
end:
  do
  :: d_step { accept(0) }
  :: d_step { accept(1) }
#ifndef NO_CANCEL
  :: d_step { open(0) && task[0].stage == ACCEPTED -> release(0) }
  :: d_step { open(1) && task[1].stage == ACCEPTED -> release(1) }
#endif
  od
}

/* The claim of a hint's task. Its hint is acknowledged with it, or delivered once more. */
inline claim(id, redelivered) {
  free(me) && hint[id] && takable(id) ->
  t = id;
  hint[id] = redelivered;
  task[id].status = RUNNING;
  task[id].token = me;
  task[id].expired = 0;
  if :: task[id].stage == ACCEPTED -> task[id].crashes++ :: else fi;
  busy[me] = 1;
  ghost[id].holder = me;
  check()
}

/* The slot is done with its task, or its process died and was started again. */
inline forget() {
  if :: task[t].token == me -> task[t].token = NOBODYS :: else fi;
  if :: ghost[t].holder == me -> ghost[t].holder = NONE :: else fi;
  busy[me] = 0;
  t = 0;
  ok = 0
}

inline die() {
  may_fail -> fail_once;
  forget()
}

/* Plan, records and the next head. A step that is not held was done before under the same lease, or the lease is lost. */
inline commit() {
  if
  :: fence(t, me, ACCEPTED) ->
     mine(t);
     task[t].stage = COMMITTED;
     task[t].head = 0;
     task[t].crashes = 0; task[t].spent = 0;    /* from here on no budget applies: nothing is counted */
     ghost[t].records++;
     assert(ghost[t].records <= 1);
     assert(task[t].seq > landed[lane(t)]);     /* in the order of lane_seq */
     landed[lane(t)] = task[t].seq;
     pass_head(lane(t));
     ok = 1;
     check()
  :: else -> ok = (task[t].status == RUNNING && task[t].token == me && task[t].stage != ACCEPTED)
  fi;
  if :: !ok -> forget() :: else fi
}

inline settle() {
  if
  :: fence(t, me, COMMITTED) ->
     mine(t);
     task[t].stage = PROJECTED;
     task[t].status = SUCCEEDED;
     ghost[t].settles++;
     held--;
     unlease(t);
     check()
  :: else
  fi;
  forget()
}

inline fail() {
  if
  :: fence(t, me, ACCEPTED) -> mine(t); release(t)
  :: else
  fi;
  forget()
}

/* A recorded failure spends its class's budget and no crash. */
inline later() {
  if
  :: fence(t, me, ACCEPTED) ->
     mine(t);
     task[t].status = PENDING;
     uncount(t);
     task[t].spent++;
     unlease(t);
     check()
  :: else
  fi;
  forget()
}

/* A lease that is given back spends nothing. */
inline give_back(from) {
  may_fail -> fail_once;
  if
  :: fence(t, me, from) ->
     mine(t);
     task[t].status = PENDING;
     uncount(t);
     unlease(t);
     check()
  :: else
  fi;
  forget()
}

/* A heartbeat extends a lease that nobody took over, and finds out about one that somebody did. */
inline heartbeat() {
  task[t].token != me || task[t].expired ->
  if
  :: task[t].status == RUNNING && task[t].token == me -> task[t].expired = 0
  :: else -> forget()
  fi
}

proctype worker(byte me) {
  byte t;
  bit ok;
end:
  if
  :: d_step { claim(0, 0) }
  :: d_step { claim(0, 1) }
  :: d_step { claim(1, 0) }
  :: d_step { claim(1, 1) }
  fi;
  if
  :: task[t].stage != ACCEPTED -> goto project
  :: else
  fi;

  /* The model is asked, without a transaction, for as long as it takes. */
call:
  if
  :: d_step { heartbeat() }; if :: busy[me] -> goto call :: else -> goto end fi
  :: d_step { commit() }                                        /* facts */
  :: d_step { fail() }; goto end                                /* an answer that is no use */
  :: d_step { task[t].spent < MAX_RETRIES -> later() }; goto end        /* no answer this time */
  :: d_step { task[t].spent >= MAX_RETRIES -> fail() }; goto end
  :: d_step { give_back(ACCEPTED) }; goto end                   /* shutdown */
  :: d_step { die() }; goto end
  fi;

committed:
  if
  :: !ok -> goto end
  :: ok && may_fail -> fail_once; goto repeat                   /* the answer to COMMIT is lost */
  :: ok -> ok = 0; goto project
  fi;

repeat:
  if
  :: d_step { true -> ok = 0; commit() }; goto committed
  :: d_step { die() }; goto end
  fi;

project:
  if
  :: d_step { heartbeat() }; if :: busy[me] -> goto project :: else -> goto end fi
  :: d_step { settle() }; goto end
  :: d_step { give_back(COMMITTED) }; goto end
  :: d_step { die() }; goto end
  fi
}

/* The database's clock: any lease may expire, whether its holder is dead or alive. */
inline expire(t) {
  task[t].status == RUNNING && !task[t].expired && (task[t].token == NOBODYS || may_fail) ->
  if :: task[t].token != NOBODYS -> fail_once :: else fi;
  task[t].expired = 1
}

proctype clock() {
end:
  do
  :: d_step { expire(0) }
  :: d_step { expire(1) }
  od
}

inline rescue(t) {
#ifdef BLIND_RESCUE
  seen[t] -> seen[t] = 0;                       /* what it saw when it looked */
#else
  expired(t) && budget(t) ->
#endif
  task[t].status = PENDING;
  unlease(t);
  check()
}

inline exhaust(t) {
  !budget(t) && (expired(t) || task[t].status == PENDING) ->
  release(t)
}

/* Repair, and the workers' own fallback. */
proctype repair() {
end:
  do
#ifdef BLIND_RESCUE
  :: d_step { expired(0) && budget(0) -> seen[0] = 1 }
  :: d_step { expired(1) && budget(1) -> seen[1] = 1 }
#endif
#ifndef NO_RESCUE
  :: d_step { rescue(0) }
  :: d_step { rescue(1) }
  :: d_step { exhaust(0) }
  :: d_step { exhaust(1) }
#endif
#ifndef NO_REHINT
  :: d_step { waits(0) && !hint[0] -> hint[0] = 1 }
  :: d_step { waits(1) && !hint[1] -> hint[1] = 1 }
#endif
  od
}

/* NATS: hints get lost, and those that nothing comes of are acknowledged. */
proctype hints() {
end:
  do
  :: d_step { hint[0] && !takable(0) -> hint[0] = 0 }
  :: d_step { hint[1] && !takable(1) -> hint[1] = 0 }
  :: d_step { hint[0] && takable(0) && may_fail -> fail_once; hint[0] = 0 }
  :: d_step { hint[1] && takable(1) && may_fail -> fail_once; hint[1] = 0 }
  od
}

init {
  atomic {
    next_seq[0] = 1; next_seq[1] = 1;
    task[0].token = NONE; task[1].token = NONE;
    ghost[0].holder = NONE; ghost[1].holder = NONE;
    run callers(); run clock(); run repair(); run hints();
    run worker(0); run worker(1);
#if WORKERS > 2
    run worker(2);
#endif
    skip
  }
}
