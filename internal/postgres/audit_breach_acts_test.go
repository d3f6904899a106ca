package postgres_test

// actBreaches are about the log of acts and what it tells of.
func actBreaches() []breach {
	without := func(act, subject string) string {
		return `DELETE FROM operator_acts WHERE act = '` + act + `' AND subject = ` + subject
	}
	invented := func(act, subject, details string) string {
		return `INSERT INTO operator_acts (id, at, actor, origin, request_id, workspace_id, act, subject, details)
SELECT gen_random_uuid(), now(), 'x', 'y', '', e('workspace'), '` + act + `', ` + subject + `, '` + details + `'`
	}
	key := func(name string) string { return `(SELECT id FROM api_keys WHERE name = '` + name + `')` }
	operator := func(name string) string { return `(SELECT id FROM operators WHERE name = '` + name + `')` }
	return []breach{
		{"AKeyFromNowhere", without("key.create", key("kept")), `e('workspace')`, 1, []string{"acts: a key has no record of its creation"}},
		{"AKeyThatEndedSilently", without("key.revoke", key("ended")), `e('workspace')`, 1, []string{"acts: a key has no record of its end"}},
		{"KeysOfADeletionThatIsNotRecorded", without("workspace.delete", `e('deleted workspace')::text`), `e('deleted workspace')`, 1, []string{
			"acts: a workspace has no record of its deletion", "acts: a key has no record of its end",
		}},
		{"AKeyThatIsGone", invented("key.create", `'AAAAAAAAAAAA'`, "{}"), `e('workspace')`, 1, []string{"acts: the log tells of a key that there is not"}},
		{
			"AKeyThatCameBack", `UPDATE api_keys SET revoked_at = NULL WHERE name = 'ended'`, `e('workspace')`, 1,
			[]string{"acts: the log tells of the end of a key that goes on"},
		},
		{"AnOperatorFromNowhere", without("operator.create", operator("ann")), ``, 1, []string{"acts: a token of an operator has no record"}},
		{"AnOperatorThatEndedSilently", without("operator.revoke", operator("bob")), ``, 1, []string{"acts: a token of an operator has no record"}},
		{"AnOperatorThatIsGone", `DELETE FROM operators WHERE name = 'ann'`, ``, 1, []string{"acts: the log tells of a token of an operator that there is not"}},
		{
			"AnOperatorThatCameBack", `UPDATE operators SET revoked_at = NULL WHERE name = 'bob'`, ``, 1,
			[]string{"acts: the log tells of a token of an operator that there is not"},
		},

		{"AWorkspaceFromNowhere", without("workspace.create", `e('workspace')::text`), `e('workspace')`, 1, []string{"acts: a workspace has no record of its creation"}},
		{
			"ASilentSuspension", without("workspace.suspend", `e('suspended workspace')::text`), `e('suspended workspace')`, 1,
			[]string{"acts: a suspended workspace has no record of it"},
		},
		{
			"ASuspensionAfterTheLog", `UPDATE workspaces SET suspended_at = now() WHERE id = e('workspace')`, `e('workspace')`, 1,
			[]string{"acts: a workspace is suspended, or not, against the log"},
		},
		{
			"AResumptionAfterTheLog", `UPDATE workspaces SET suspended_at = NULL WHERE id = e('suspended workspace')`, `e('suspended workspace')`, 1,
			[]string{"acts: a workspace is suspended, or not, against the log"},
		},
		{
			"ADeletionThatDidNotBegin", invented("workspace.delete", `e('workspace')::text`, "{}"), `e('workspace')`, 1,
			[]string{"acts: the log tells of a workspace that there is not, or of a deletion that did not begin"},
		},

		{"AGrantFromNowhere", without("credits.grant", `'start' AND workspace_id = e('workspace')`), `e('workspace')`, 1, []string{"acts: a grant has no record of its amount"}},
		{
			"AGrantOfAnotherAmount", `UPDATE operator_acts SET details = '{"amount": 1}' WHERE act = 'credits.grant' AND workspace_id = e('workspace')`, `e('workspace')`, 1,
			[]string{"acts: the log tells of a grant that there is not", "acts: a grant has no record of its amount"},
		},

		{"ASilentRetry", without("event.retry", `'evt_' || e('retried')`), `e('retried')`, 1, []string{"acts: an event was retried without a record"}},
		{"ARetryThatWasNot", invented("event.retry", `'evt_' || e('retried')`, "{}"), `e('workspace')`, 1, []string{"acts: the log tells of a retry that there was not"}},
		{"ASilentCancel", without("event.cancel", `'evt_' || e('cancelled')`), `e('cancelled')`, 1, []string{"acts: an event was cancelled without a record"}},
		{"ACancelOfASuccess", invented("event.cancel", `'evt_' || e('stored')`, "{}"), `e('stored')`, 1, []string{"acts: the log tells of a cancel of an event that went on"}},
		{"ASilentErase", without("scope.erase", `'evt_' || e('erase')`), `e('erase')`, 1, []string{"acts: an erase, export or import has no record"}},
		{"ASilentExport", without("workspace.export", `'evt_' || e('export')`), `e('export')`, 1, []string{"acts: an erase, export or import has no record"}},
		{"ASilentImport", without("workspace.import", `'evt_' || e('import')`), `e('import')`, 1, []string{"acts: an erase, export or import has no record"}},
		{"AnEraseOfNobody", invented("scope.erase", `'evt_' || e('nobody')`, "{}"), `e('workspace')`, 1, []string{"acts: the log tells of an event that there is not"}},
	}
}
