import Martlet
import MartletModel

/// The figures of the devices whose users see a part of the data.
public struct ViewFigures: Hashable, Sendable {
    /// The number of these devices, and of their users.
    public var devices = 0
    public var people = 0
    /// The number of records on the server that the devices' users may not see, of all devices together.
    public var hidden = 0
    /// The number of times that a record entered or left the view of a device.
    public var moves = 0
    /// The number of devices that have confirmed that they have no hidden record, as `martlet purges`
    /// says.
    public var confirmed = 0
    /// The number of hidden records that were found in the bytes of a device's files.
    public var leaks = 0

    public init() {}

    /// Whether nothing hidden was found, all devices have confirmed, and there was something to see.
    public var isGood: Bool {
        leaks == 0 && confirmed == devices && hidden > 0 && moves > 0
    }
}

/// Looks for records that the devices' users may not see in the devices' files.
struct ViewAudit {
    let team: DemoTeam
    let comparison: ReplicaComparison
    let log: LogAudit

    /// Returns all figures but that of confirmations; nil if all users see everything.
    /// - Parameter findings: Faults are added to it, in sentences.
    func figures(findings: inout [String]) async throws -> ViewFigures? {
        let devices = team.coached
        guard !devices.isEmpty else { return nil }
        var figures = ViewFigures()
        figures.devices = devices.count
        figures.people = Set(devices.compactMap(\.coach)).count
        for device in devices {
            figures.moves += moves(of: device)
            try search(device, &figures, &findings)
        }
        return figures
    }

    /// Returns how many records entered or left the view. One that was created or deleted meanwhile did
    /// not move.
    private func moves(of device: DemoDevice) -> Int {
        (device.moves?.steps ?? []).reduce(0) { sum, step in
            sum
                + step.came.count { log.lives[$0].map { $0.from <= step.from } == true }
                + step.went.count { log.lives[$0].map { $0.to > step.to } == true }
        }
    }

    private func search(
        _ device: DemoDevice, _ figures: inout ViewFigures, _ findings: inout [String]
    ) throws {
        guard let coach = device.coach else { return }
        let conditions = OrganisationRules.conditions(of: coach)
        var shown: Set<String> = []
        var hidden: [(type: String, canaries: Set<String>)] = []
        for type in team.schema.types {
            guard let condition = conditions[type.name] else { continue }
            let texts = try comparison.texts(type, condition)
            shown.formUnion(texts.met.flatMap { Canary.all(in: $0) })
            hidden += texts.unmet.map { (type.name, Canary.all(in: $0)) }
        }
        figures.hidden += hidden.count
        let found = try team.bytes(of: device).reduce(into: Set<String>()) {
            $0.formUnion(Canary.all(in: $1))
        }
        // A search that does not find what the device shows would find nothing else either.
        if let missed = shown.subtracting(found).first {
            findings.append(
                "device \(device.number): \(missed) is not in its files, but is visible")
        }
        if let bare = hidden.first(where: { $0.canaries.isEmpty }) {
            findings.append("a hidden record of \(bare.type) has no canary")
        }
        for record in hidden {
            // A person may keep what he typed.
            let secret = record.canaries.filter { !$0.hasPrefix(device.markPrefix) }
            let leaked = secret.intersection(found)
            guard let canary = leaked.sorted().first else { continue }
            figures.leaks += 1
            if findings.count < 20 {
                findings.append(
                    "device \(device.number) of \(coach) has \(canary) of \(record.type)")
            }
        }
    }
}
