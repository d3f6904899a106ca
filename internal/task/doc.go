// Package task is the durable execution of a command: its states, the moves between them, the classes of
// failure and what each class does next. It is pure: no clock, no I/O.
//
// The state of a task is its status and its stage:
//
//	                 claim                         commit                       settle
//	pending/accepted ─────▶ running/accepted ────────────▶ running/committed ─────────▶ succeeded/projected
//	   ▲   │   ▲               │    │    │                    │        ▲                      ▲
//	   │   │   └──retry, give──┘    │    └──────settle────────┼────────┼──────────────────────┤ (local embedder)
//	   │   │      back, rescue      │       (both at once)    ▼ retry, │ claim                │
//	   │   │                        │                   pending/committed ◀── write now ──────┘ (born succeeded)
//	   │   └─cancel, exhaust─▶ failed/accepted ◀─fail, cancel, exhaust
//	   └──────────────────────────manual retry (a new generation)
//
// Rules it guards: final states have no exits but the manual retry of a failed task (I5, I6); a task with
// canonical records never fails (I6); every claim is counted (I9). Every move that API, worker and repair make
// is in Moves, and a test holds this drawing and that table together. It may import the standard library only.
package task
