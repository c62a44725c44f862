/// The names that tables and attributes cannot have, because the wire uses them.
package enum ReservedWords {
    /// Members of a change set; no entity type may have one of these names.
    package static let types: Set<String> = [
        "types", "identifier", "sequence", "seen", "dependencyIdentifier", "timestamp",
        "revision", "conflict", "reason", "message", "retryAfter", "clientId", "protocol",
        "maxRevision", "acknowledged", "changeSets", "dataSet", "lineage", "schema", "more",
        "part", "parts", "difference", "rows", "check", "__proto__", "constructor", "prototype",
    ]
    /// Members of a record's attributes that are not attributes.
    package static let attributes: Set<String> = [
        "revision", "__oldId__", "__proto__", "constructor", "prototype",
    ]
    /// The prefix of Martlet's own tables and columns.
    package static let prefix = "martlet_"
    /// The one column with that prefix which devices have too: the key of a table that was adopted
    /// without a key of one column.
    package static let surrogateKey = "martlet_id"
}
