extension CommandDescription {
    /// All commands, in the order of the overview.
    static let all: [CommandDescription] = [
        .serve, .tokenCreate, .tokenList, .tokenRevoke, .postgresInit, .postgresAdopt,
        .postgresRelease, .postgresSchema, .postgresCompare, .rulesCheck, .rulesTest, .explain,
        .initialise, .sync,
        .status, .check,
        .importRecords,
        .exportRecords, .schema, .snapshot, .backup, .restore, .compact, .doctor, .purges, .demo,
        .soak,
        .simulate,
        .mock, .completion,
    ]
}
