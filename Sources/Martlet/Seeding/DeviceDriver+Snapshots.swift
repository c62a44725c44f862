internal import MartletStore
internal import SystemKit

extension DeviceDriver {
    /// Fetches the newest snapshot for a device that has a file and no data, beside what it may have
    /// queued. Where there is none of one part, the device begins with the change log.
    func fetchSnapshot(_ number: Int) {
        guard let inbox else { return }
        guard let source = transport as? any SnapshotSource else {
            return inbox(.snapshotFailed(number, message: "The transport has no snapshots."))
        }
        let path = node.store.snapshotPath
        fetching = Task {
            do {
                _ = try await ShippedSnapshot.fetch(from: source, to: path)
                inbox(.snapshotFetched(number))
            } catch {
                inbox(.snapshotFailed(number, message: "\(error)"))
            }
        }
    }
}
