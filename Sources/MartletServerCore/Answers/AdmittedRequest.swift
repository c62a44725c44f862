internal import MartletModel
package import MartletProtocol

/// A request that has been read and whose sender is known.
package struct AdmittedRequest: Sendable {
    package let principal: Principal
    package let request: SyncRequest
    /// The bytes from which the request was read; `ChangeSet.source` points into them.
    package let source: [UInt8]
    /// True if the answer may be a gzip member.
    package let acceptsGzip: Bool

    /// Makes a request of a known sender.
    package init(
        principal: Principal, request: SyncRequest, source: [UInt8], acceptsGzip: Bool = false
    ) {
        self.principal = principal
        self.request = request
        self.source = source
        self.acceptsGzip = acceptsGzip
    }

    /// The lineage that the device names, parsed; nil if a program names none.
    ///
    /// A device that names none at a revision has stopped between two entries of an answer. Only answers
    /// to people who see everything are entries, so it has everything.
    var lineage: DeviceLineage? {
        if let named = request.lineage { return DeviceLineage(named) }
        let isDevice = request.clientID != nil && request.protocolVersion != nil
        return isDevice && request.maxRevision > 0 ? DeviceLineage(hash: "") : nil
    }

    /// True if the request has nothing to store, and only asks for missed sets.
    var isPull: Bool { request.changeSets.isEmpty && request.purged == nil }
}
