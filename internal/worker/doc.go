// Package worker runs tasks: claim, infer, commit, project, settle, then ack. A hint only says where to look;
// the claim decides.
//
// Rules it guards: every write for a claimed task goes through its lease (I3); a task whose plan is committed
// never calls the extractor again (I4); every claim is counted before work starts (I9); no transaction is open
// during a provider call; the process's clock may only make it stop earlier (I11). It may import the domain
// packages, fault and failpoint.
package worker
