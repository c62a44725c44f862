import MartletModel
import MartletProtocol

/// The notes about devices: which view each was given last, and what it has confirmed.
extension DataSetNode {
    /// Notes within the open transaction which views devices are given from now on, and what they confirm.
    ///
    /// The tokens of a person's devices may have different roles.
    ///
    /// - Parameter views: The numbers of the views, in parallel to the requests; nil for no view.
    func noteDevices(
        of requests: [AdmittedRequest], _ works: inout [RequestWork?],
        _ sought: [Int: SoughtView], _ views: [Int64?], now: Int64
    ) throws(StorageFault) {
        var notes = try deviceNotes(works)
        for (index, request) in requests.enumerated() {
            guard let work = works[index], work.device != 0 else { continue }
            var note = notes[work.device] ?? DeviceNote()
            if let view = views[index], view != note.view {
                try storage.views.give(
                    view, toDevice: work.device, at: storage.head.revision)
                note = DeviceNote(view: view)
            }
            let moves = sought[index].map { view in
                view.held.contains { $0 != view.outline.number }
            }
            try limitConfirmation(&note, work, request.request, moves: moves ?? false)
            // A device that has records of another view cannot have removed them.
            if moves != true { try noteReceipt(&note, work, request, now: now) }
            notes[work.device] = note
        }
        for case (let index, let work?) in works.enumerated() where work.device != 0 {
            works[index]?.noted = notes[work.device]
        }
    }

    /// Returns the notes about the devices of a batch.
    private func deviceNotes(
        _ works: [RequestWork?]
    ) throws(StorageFault) -> [Int64: DeviceNote] {
        var (notes, unknown): ([Int64: DeviceNote], [Int64]) = ([:], [])
        for case let work? in works where work.device != 0 {
            // Other processes may have noted something else since memory did.
            let isOld = storage.isShared && policies != nil
            let known = isOld ? nil : feed.note(ofDevice: work.device)
            if let known { notes[work.device] = known } else { unknown.append(work.device) }
        }
        if !unknown.isEmpty {
            try notes.merge(storage.views.notes(ofDevices: unknown)) { $1 }
        }
        return notes
    }

    /// Notes up to which revision a device's confirmation counts from now on.
    ///
    /// A device that names an older revision than it confirmed is an older copy of its file, and may have
    /// records again that have left the view since that revision. If it has records of other views or of
    /// another history, the confirmation says nothing about them.
    ///
    /// - Parameter moves: Whether the device may have records of other views.
    private func limitConfirmation(
        _ note: inout DeviceNote, _ work: RequestWork, _ request: SyncRequest, moves: Bool
    ) throws(StorageFault) {
        guard let confirmed = note.confirmed, note.view != View.everything else { return }
        let isUnknown = work.problem.map(RequestCheck.isOfRecords) ?? false
        guard isUnknown || request.maxRevision < confirmed else { return }
        let counted = isUnknown || moves ? nil : request.maxRevision
        try storage.views.limit(confirmationOf: work.device, to: counted)
        note.confirmed = counted
    }

    /// Keeps what a device confirms to have removed.
    private func noteReceipt(
        _ note: inout DeviceNote, _ work: RequestWork, _ admitted: AdmittedRequest, now: Int64
    ) throws(StorageFault) {
        guard var receipt = admitted.request.purged, work.problem == nil,
            receipt.revision <= storage.head.revision
        else { return }
        // Nothing was given to somebody who sees everything. His devices are told from those that
        // are limited by this.
        if receipt.view == View.everything, feed.views.showsEverything(to: admitted.principal) {
            try storage.views.give(
                View.everything, to: admitted.principal.identity, at: storage.head.revision)
            try storage.views.give(
                View.everything, toDevice: work.device, at: storage.head.revision)
            note.view = View.everything
        }
        // A device has what it names, whatever it confirms.
        receipt.revision = min(receipt.revision, admitted.request.maxRevision)
        try storage.views.note(receipt, of: work.device, now: now)
        note.confirmed = receipt.view == View.everything ? nil : receipt.revision
    }
}
