package postgres

// EntitiesSQL is the statement of a page of users after an id.
func EntitiesSQL() string { return entitiesStatement("user_id", entityAfter) }
