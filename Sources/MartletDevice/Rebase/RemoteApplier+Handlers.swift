internal import MartletModel
internal import MartletProtocol
internal import MartletStore

extension RemoteApplier {
    func tell(
        _ entry: RecordEntry, of type: String, isWhole: Bool, revision: Revision
    ) throws {
        guard !registry.isEmpty, let handler = registry[type] else { return }
        try tell(
            handler,
            RemoteChange(
                type: type, id: entry.id, kind: isWhole ? .whole : .part,
                attributes: RecordValues(entry.attributes, of: store.schema[type]),
                revision: revision))
    }

    func tell(deletionOf id: RecordID, of type: String, revision: Revision) throws {
        guard !registry.isEmpty, let handler = registry[type] else { return }
        try tell(
            handler,
            RemoteChange(
                type: type, id: id, kind: .deleted, attributes: RecordValues(), revision: revision))
    }

    private func tell(_ handler: any EntityHandler, _ change: RemoteChange) throws {
        do {
            try handler.take(change, in: RemoteContext(store: store))
        } catch {
            throw HandlerFailure(message: "The app's handler of \(change.type) failed: \(error)")
        }
    }
}
