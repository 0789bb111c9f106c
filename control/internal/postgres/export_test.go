package postgres

// SelectChanges is the statement of ChangesAfter.
const SelectChanges = selectChanges
