package deliveries

// SelectView is the statement whose plan is tested.
const SelectView = selectView
