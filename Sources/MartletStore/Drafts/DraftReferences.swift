/// The references of a draft to records whose temporary ids have become permanent.
struct DraftReferences: Sendable {
    var base = RecordValues()
    var edited = RecordValues()

    var isEmpty: Bool { base.isEmpty && edited.isEmpty }

    func applied(toBase values: RecordValues) -> RecordValues { Self.apply(base, to: values) }
    func applied(toEdited values: RecordValues) -> RecordValues { Self.apply(edited, to: values) }

    private static func apply(_ permanent: RecordValues, to values: RecordValues) -> RecordValues {
        var applied = values
        for (name, value) in zip(permanent.names, permanent.values) { applied[name] = value }
        return applied
    }
}
